/** The page of one post: the post that it replies to, the post itself, a field for a reply, and the replies. */

import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { navigate } from "../app/router";
import { withoutItem } from "../timeline/window";
import { PageTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { FanOutProgress } from "./fan-out";
import { FeedList } from "./feed-list";
import { type OpenPost, type Post, PostWithReplies } from "./operations";
import { PostCard } from "./post-card";
import { type PostChange, withChangedPost, withChangedPosts } from "./post-changes";
import { PostComposer } from "./post-composer";
import { useFeed } from "./use-feed";

export function PostPage({ id }: { id: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [post, setPost] = useState<OpenPost | null>(null);
  const feed = useFeed<Post>(async (latest, inclusive) => {
    const { post } = await request(direct, PostWithReplies, { id, latest, inclusive });
    if (post === null) throw new Error("The server answers an unknown post with an error.");
    if (latest === "now") setPost(post);
    return post.replies;
  }, false);
  useEffect(() => void feed.open(null), [feed]);
  return (
    <FeedList
      feed={feed}
      head={
        post && (
          <PostPageHead post={post} setPost={setPost} onChanged={handleChange} onReplied={handleReply} />
        )
      }
      empty={<EmptyState icon="chat" title={t("post.noReplies")} hint={t("post.noRepliesHint")} />}
    >
      {(reply) => (
        <PostCard
          key={reply.id}
          post={reply}
          onChanged={handleChange}
          onDeleted={(deletedId) => feed.apply((window) => withoutItem(window, deletedId))}
        />
      )}
    </FeedList>
  );

  function handleChange(id: string, change: PostChange) {
    setPost((current) => current && withChange(current, id, change));
    feed.apply((window) => withChangedPosts(window, id, change));
  }

  function handleReply(reply: Post) {
    feed.put(reply);
    setPost((current) => current && { ...current, replyCount: current.replyCount + 1 });
  }
}

function withChange(post: OpenPost, id: string, change: PostChange): OpenPost {
  const { parent } = post;
  return { ...withChangedPost(post, id, change), parent: parent?.id === id ? change(parent) : parent };
}

interface PostPageHeadProps {
  post: OpenPost;
  setPost: (post: OpenPost) => void;
  onChanged: (postId: string, change: PostChange) => void;
  onReplied: (reply: Post) => void;
}

function PostPageHead({ post, setPost, onChanged, onReplied }: PostPageHeadProps) {
  const { t } = useTranslation();
  const { parent } = post;
  const original = post.repostOf ?? post;
  return (
    <>
      <PageTitle name={t("post.title")} />
      <h1 className="py-5 text-xl font-semibold">{t("post.title")}</h1>
      {parent && (
        <section aria-label={t("post.earlier")}>
          <PostCard
            post={{ ...parent, isRepost: false, repostOf: null }}
            onChanged={onChanged}
            onDeleted={() => setPost({ ...post, parent: null })}
          />
        </section>
      )}
      <PostCard post={post} onChanged={onChanged} onDeleted={() => navigate({ name: "home" })} />
      {post.fanOut && <FanOutProgress fanOut={post.fanOut} />}
      <div className="py-3">
        <PostComposer kind="reply" otherId={original.id} onPosted={onReplied} />
      </div>
      <h2 className="border-b border-line pb-2 font-semibold">{t("post.replies")}</h2>
    </>
  );
}
