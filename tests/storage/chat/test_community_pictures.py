"""Pictures of communities: one of several chosen at once stays, and rights are checked in the commit."""

import asyncio

import pytest

from storage.chat.communities import NewCommunity
from storage.chat.community_pictures import PURPOSES, CommunityPicture
from storage.chat.memberships import community_stream
from storage.chat.records import Community
from storage.chat.roles import CommunityRole, Moderator
from storage.errors import DomainError, Forbidden, NotFound
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.files.records import FileState, UploadPurpose
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Mongo
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ANN, BOB = Moderator("ann"), Moderator("bob")
SIZE = 6

EITHER = pytest.mark.parametrize("kind", CommunityPicture)


@pytest.fixture
async def people(stores: Stores) -> list[User]:
    return [await stores.users.sign_in("acme", name, [Role.MEMBER], None, None) for name in ("ann", "bob")]


@pytest.fixture
async def community(stores: Stores, people: list[User]) -> Community:
    """A community that Ann and Bob own."""
    ann, bob = people
    created = await stores.communities.create(NewCommunity("acme", "Beacons", ""), ann, None)
    await stores.communities.join(created, bob)
    await stores.moderation.set_role(created, ANN, "bob", CommunityRole.OWNER)
    return created


async def upload(stores: Stores, user_id: str, purpose: UploadPurpose) -> str:
    """Returns the id of a picture of the user that is ready."""
    owner = UserKey("acme", user_id)
    created = await stores.uploads.create(owner, "ann.png", SIZE, purpose)
    await stores.uploads.append(created, b"pixels")
    picture = EncodedPicture("image/png", 3, 3, b"pixels")
    while (await stores.uploads.get(owner, created.id)).state is not FileState.READY:
        # A check is due from the next millisecond on.
        if (file := await stores.file_checks.claim()) is not None:
            await stores.file_checks.accept_picture(file, DecodedPicture(picture, [picture], "LKO2"))
    return created.id


async def shown_files(mongo: Mongo) -> list[str]:
    return [each["_id"] for each in await mongo.find("files", {"places": {"$exists": True}}, {"_id": 1})]


async def usage(stores: Stores) -> dict[str, int]:
    """Returns the bytes that count for each user, and for the organization."""
    return {each["_id"]["u"]: each["bytes"] for each in await stores.mongo.find("file_usage", {})}


@EITHER
async def test_of_pictures_chosen_at_once_one_stays(
    stores: Stores, community: Community, kind: CommunityPicture
) -> None:
    purpose, pictures = PURPOSES[kind], stores.community_pictures
    files = [(owner, await upload(stores, owner.user_id, purpose)) for owner in (ANN, BOB) * 3]
    await asyncio.gather(*(pictures.set(community, owner, kind, file_id) for owner, file_id in files))
    document = await stores.mongo["communities"].find_one({"_id": community.id})
    assert document is not None
    assert await shown_files(stores.mongo) == [document[kind.value]]
    assert await stores.mongo["files"].count_documents({"expires_at": {"$exists": True}}) == 5
    while await stores.file_deletion.delete_expired():
        pass
    assert {name: bytes_ for name, bytes_ in (await usage(stores)).items() if bytes_} == {"": SIZE}


async def test_equal_choices_at_once_emit_one_event(stores: Stores, community: Community) -> None:
    file_id, kind = await upload(stores, "ann", UploadPurpose.AVATAR), CommunityPicture.PICTURE
    stream = community_stream(community.id)
    before = len(await stores.events.read(stream, 0))
    await asyncio.gather(*(stores.community_pictures.set(community, ANN, kind, file_id) for _ in range(5)))
    events = (await stores.events.read(stream, 0))[before:]
    assert [each.kind for each in events] == ["CommunityChanged"]
    assert await shown_files(stores.mongo) == [file_id]


async def test_upload_for_two_communities_at_once_is_given_once(
    stores: Stores, community: Community, people: list[User]
) -> None:
    other = await stores.communities.create(NewCommunity("acme", "Harbour", ""), people[0], None)
    file_id, kind = await upload(stores, "ann", UploadPurpose.AVATAR), CommunityPicture.PICTURE
    profile = stores.profile_pictures.set(UserKey("acme", "ann"), UploadPurpose.AVATAR, file_id)
    changes = [stores.community_pictures.set(each, ANN, kind, file_id) for each in (community, other)]
    results = await asyncio.gather(profile, *changes, return_exceptions=True)
    assert len([each for each in results if isinstance(each, DomainError)]) == 2
    file = await stores.mongo["files"].find_one({"_id": file_id})
    assert file is not None
    assert len(file["places"]) == 1
    assert sum((await usage(stores)).values()) == (SIZE if file["user"] == "" else 2 * SIZE)


@pytest.mark.parametrize("has_file", [True, False])
async def test_owner_who_was_demoted_meanwhile_is_refused(stores: Stores, community: Community, has_file: bool) -> None:
    """The request of Bob was checked while he owned the community."""
    kind = CommunityPicture.PICTURE
    shown = await upload(stores, "ann", UploadPurpose.AVATAR)
    await stores.community_pictures.set(community, ANN, kind, shown)
    file_id = await upload(stores, "bob", UploadPurpose.AVATAR) if has_file else None
    await stores.moderation.set_role(community, ANN, "bob", CommunityRole.MODERATOR)
    with pytest.raises(Forbidden):
        await stores.community_pictures.set(community, BOB, kind, file_id)
    assert await shown_files(stores.mongo) == [shown]


async def test_file_of_another_owner_is_refused(stores: Stores, community: Community) -> None:
    file_id = await upload(stores, "ann", UploadPurpose.AVATAR)
    with pytest.raises(NotFound):
        await stores.community_pictures.set(community, BOB, CommunityPicture.PICTURE, file_id)
    assert (await shown_files(stores.mongo), await usage(stores)) == ([], {"ann": SIZE, "": SIZE})


async def test_file_that_is_being_deleted_is_refused(stores: Stores, community: Community) -> None:
    file_id = await upload(stores, "ann", UploadPurpose.AVATAR)
    await stores.mongo["files"].update_one({"_id": file_id}, {"$set": {"deleting": True}})
    with pytest.raises(NotFound):
        await stores.community_pictures.set(community, ANN, CommunityPicture.PICTURE, file_id)


async def test_refused_change_leaves_the_earlier_picture(stores: Stores, community: Community) -> None:
    """The changes of one batch are planned together, and one that is refused changes no file of the others."""
    kind, pictures = CommunityPicture.PICTURE, stores.community_pictures
    shown, wrong = await upload(stores, "ann", UploadPurpose.AVATAR), await upload(stores, "ann", UploadPurpose.BANNER)
    changes = [pictures.set(community, ANN, kind, each) for each in (shown, wrong, "none")]
    results = await asyncio.gather(*changes, return_exceptions=True)
    assert [isinstance(each, DomainError) for each in results] == [False, True, True]
    assert await shown_files(stores.mongo) == [shown]
