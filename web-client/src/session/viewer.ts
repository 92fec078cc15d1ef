/** The signed-in user, for every component inside the frame. */
import { createContext, useContext } from "react";
import { graphql, type ResultOf } from "../api/graphql";

export const ViewerQuery = graphql(`
  query Viewer {
    viewer { id handle name avatarUrl organizationId roles }
  }
`);

export type ViewerUser = NonNullable<ResultOf<typeof ViewerQuery>["viewer"]>;

const ViewerContext = createContext<ViewerUser | null>(null);
export const ViewerProvider = ViewerContext.Provider;

export function useViewer(): ViewerUser {
  const viewer = useContext(ViewerContext);
  if (viewer === null) throw new Error("There is no ViewerProvider above this component.");
  return viewer;
}
