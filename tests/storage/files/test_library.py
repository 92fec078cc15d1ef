"""Media libraries: files stay until their owner removes them, are attached many times, and count once."""

import asyncio

import pytest

from jobs.files import delete_expired_files
from storage.errors import BadUserInput, Conflict, NotFound, QuotaExceeded
from storage.files import attachments, library
from storage.files.attachments import NewAttachment
from storage.files.library import LIBRARY_PLACE
from storage.files.records import UploadPurpose
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.records import ScheduledPost
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario

pytestmark = pytest.mark.anyio


@pytest.fixture
async def scenario(stores: Stores) -> PublishingScenario:
    return await create_publishing_scenario(stores)


async def add(scenario: PublishingScenario, data: bytes = b"hill", alt: str = "A hill") -> str:
    """Returns the id of a new picture in Ann's library."""
    id_ = await scenario.upload(data, "image/jpeg")
    await scenario.stores.media_library.add(scenario.ann.key, NewAttachment(id_, alt))
    return id_


async def listed(scenario: PublishingScenario, after: str | None = None, limit: int = 50) -> list[tuple[str, str]]:
    files = await scenario.stores.media_library.list_files(scenario.ann.key, after, limit)
    return [(each.id, each.alt_text) for each in files]


async def places(scenario: PublishingScenario, id_: str) -> set[str]:
    return set((await scenario.stores.uploads.get(scenario.ann.key, id_)).places)


async def schedule(scenario: PublishingScenario, *ids: str) -> ScheduledPost:
    return await scenario.schedule(attachments=[NewAttachment(id_, "A hill") for id_ in ids])


async def edit(scenario: PublishingScenario, post: ScheduledPost, *ids: str) -> None:
    change = ScheduledPostEdit(attachments=[NewAttachment(id_, "A hill") for id_ in ids])
    await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, change)


async def sweep(scenario: PublishingScenario) -> None:
    await delete_expired_files(job_context(scenario.stores))


async def test_library_lists_the_latest_upload_first(scenario: PublishingScenario) -> None:
    ids = [await add(scenario, alt=f"Hill {n}") for n in range(3)]
    await scenario.upload(b"hill", "image/jpeg")
    assert await listed(scenario) == [(ids[2], "Hill 2"), (ids[1], "Hill 1"), (ids[0], "Hill 0")]
    assert await listed(scenario, limit=1) == [(ids[2], "Hill 2")]
    assert await listed(scenario, after=ids[1]) == [(ids[0], "Hill 0")]
    stranger = UserKey(scenario.organization_id, "bob")
    assert await scenario.stores.media_library.list_files(stranger, None, 50) == []


async def test_file_of_library_is_attached_many_times_and_counts_once(scenario: PublishingScenario) -> None:
    id_ = await add(scenario)
    posts = await asyncio.gather(*(schedule(scenario, id_) for _ in range(4)))
    publications = [await scenario.publication(post) for post in posts]
    assert await places(scenario, id_) == {LIBRARY_PLACE, *(f"publication:{each.id}" for each in publications)}
    assert await FileUsage(scenario.stores.mongo).of_user(scenario.ann.key) == len(b"hill")
    for post in posts:
        await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    await sweep(scenario)
    assert await places(scenario, id_) == {LIBRARY_PLACE}


async def test_file_outside_of_a_library_is_attached_once(scenario: PublishingScenario) -> None:
    id_ = await scenario.upload(b"hill", "image/jpeg")
    post = await schedule(scenario, id_)
    with pytest.raises(Conflict):
        await schedule(scenario, id_)
    await scenario.stores.media_library.add(scenario.ann.key, NewAttachment(id_, "A hill"))
    other = await schedule(scenario, id_)
    assert len(await places(scenario, id_)) == 3
    assert [(await scenario.publication(each)).file_ids for each in (post, other)] == [(id_,), (id_,)]


async def test_edit_that_leaves_a_file_out_keeps_its_other_places(scenario: PublishingScenario) -> None:
    id_, other_id = await add(scenario), await add(scenario)
    post, other = await schedule(scenario, id_), await schedule(scenario, id_)
    await edit(scenario, post, other_id)
    await sweep(scenario)
    assert await places(scenario, id_) == {LIBRARY_PLACE, f"publication:{(await scenario.publication(other)).id}"}
    assert await places(scenario, other_id) == {LIBRARY_PLACE, f"publication:{(await scenario.publication(post)).id}"}
    await edit(scenario, other, id_, other_id)
    assert len(await places(scenario, other_id)) == 3


async def test_removed_file_stays_while_attached(scenario: PublishingScenario) -> None:
    library_, id_, unused = scenario.stores.media_library, await add(scenario), await add(scenario)
    post = await schedule(scenario, id_)
    for each in (id_, unused):
        await library_.remove(scenario.ann.key, each)
    assert await listed(scenario) == []
    assert await places(scenario, id_) == {f"publication:{(await scenario.publication(post)).id}"}
    expiry = (await scenario.stores.uploads.get(scenario.ann.key, unused)).expires_at
    assert expiry is not None
    assert (expiry - await scenario.now()).total_seconds() > 23 * 3600
    with pytest.raises(Conflict):
        await schedule(scenario, id_)
    with pytest.raises(NotFound):
        await library_.remove(scenario.ann.key, id_)
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    await sweep(scenario)
    assert await scenario.stores.uploads.find(scenario.ann.key, id_) is None


async def test_library_has_a_limit(scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "MAX_FILES", 2)
    ids = [await scenario.upload(b"hill", "image/jpeg") for _ in range(6)]
    adding = [scenario.stores.media_library.add(scenario.ann.key, NewAttachment(id_, "A hill")) for id_ in ids]
    outcomes = await asyncio.gather(*adding, return_exceptions=True)
    assert [type(each) for each in outcomes].count(QuotaExceeded) == 4
    kept = await listed(scenario)
    assert len(kept) == 2
    await scenario.stores.media_library.add(scenario.ann.key, NewAttachment(kept[0][0], "Another text"))
    assert (await listed(scenario))[0][1] == "Another text"
    await scenario.stores.media_library.remove(scenario.ann.key, kept[0][0])
    await add(scenario)


async def test_places_of_a_file_have_a_limit(scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_PLACES", 3)
    id_ = await add(scenario)
    for _ in range(2):
        await schedule(scenario, id_)
    with pytest.raises(Conflict, match="3 places"):
        await schedule(scenario, id_)


async def test_file_that_cannot_be_kept_is_refused(scenario: PublishingScenario) -> None:
    library_, uploads, ann = scenario.stores.media_library, scenario.stores.uploads, scenario.ann.key
    picture = await scenario.upload(b"hill", "image/jpeg")
    avatar = await uploads.create(ann, "a", 5, UploadPurpose.AVATAR)
    incomplete = await uploads.create(ann, "a", 5)
    for id_, alt, error in (
        (picture, "", BadUserInput),
        (avatar.id, "A hill", BadUserInput),
        (incomplete.id, "A hill", Conflict),
        ("none", "A hill", NotFound),
    ):
        with pytest.raises(error):
            await library_.add(ann, NewAttachment(id_, alt))
    for stranger in (UserKey(scenario.organization_id, "bob"), UserKey("globex", "ann")):
        with pytest.raises(NotFound):
            await library_.add(stranger, NewAttachment(picture, "A hill"))
    assert await listed(scenario) == []


async def test_file_of_library_cannot_be_cancelled(scenario: PublishingScenario) -> None:
    id_ = await add(scenario)
    file = await scenario.stores.uploads.get(scenario.ann.key, id_)
    assert not await scenario.stores.file_deletion.cancel(file)
    await scenario.stores.file_deletion.erase(id_)
    assert await listed(scenario) == []
