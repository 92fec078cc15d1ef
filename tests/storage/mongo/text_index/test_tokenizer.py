"""Terms of texts: languages, normalisation and offsets."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.mongo.text_index.tokenizer import MAX_TERMS, TextWord, normalized, query_terms, terms, words

SAMPLES = "aé e\u0301ｶﾞガか\u3099花火。ab한국한국สวัส привет ΣΊΣ ſß ﷺ हिन्दी_#@\u200d🎆½"
texts = st.text(st.one_of(st.sampled_from(SAMPLES), st.characters(exclude_categories=["Cs"])), max_size=40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fireworks, tonight!", ["firework", "tonight"]),
        ("花火大会", ["花火", "火大", "大会", "花", "火", "大", "会"]),
        ("まつり2026年", ["まつ", "つり", "2026", "年"]),
        ("ｶﾞﾝﾊﾞﾚ", ["ガン", "ンバ", "バレ"]),
        ("ＡＢＣ　ｃａｆé", ["abc", "café"]),
        ("Straße", ["strass"]),
        ("мирами", ["мир"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("한국어", ["한국", "국어"]),
        ("hana_k https://example.com/a", ["hana", "k", "https", "exampl", "com", "a"]),
        ("🎆 …!?", []),
    ],
)
def test_terms_of_languages(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("one", "other"), [("Café", "cafe\u0301"), ("ガ", "ｶﾞ"), ("がぎ", "か\u3099き\u3099"), ("ﬁn", "FIN")]
)
def test_equivalent_texts_have_the_same_terms(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


@given(texts)
def test_terms_do_not_depend_on_form_and_case(text: str) -> None:
    assert terms(normalized(text)) == terms(text)
    assert terms(unicodedata.normalize("NFC", text)) == terms(unicodedata.normalize("NFD", text))


@given(texts)
def test_offsets_point_at_the_word_in_the_text(text: str) -> None:
    for word in words(text):
        assert len(word.offsets) == len(word.text)
        assert word.text in normalized(text[word.start : word.end])


@given(texts, texts)
def test_text_has_the_terms_of_each_of_its_words(one: str, other: str) -> None:
    together = set(terms(f"{one} {other}"))
    assert {term for word in words(one) for term in query_terms(word)} <= together


@given(st.text("花火大会はabc ", max_size=30), st.data())
def test_run_is_found_by_each_part_of_two_characters(text: str, data: st.DataObject) -> None:
    runs = [word for word in words(text) if word.is_run and len(word.text) > 1]
    for run in runs:
        start = data.draw(st.integers(0, len(run.text) - 2))
        part = run.text[start : data.draw(st.integers(start + 2, len(run.text)))]
        assert set(query_terms(TextWord(part, True, run.offsets))) <= set(terms(text))


def test_number_of_terms_is_limited() -> None:
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 2 * MAX_TERMS)))
    assert len(terms(characters)) == MAX_TERMS
    assert len(terms(" ".join(f"w{number}" for number in range(2 * MAX_TERMS)))) == MAX_TERMS
