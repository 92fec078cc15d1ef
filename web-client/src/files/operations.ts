/** API operations of files and uploads. */
import { graphql, type ResultOf, type VariablesOf } from "../api/graphql";

export const AttachmentParts = graphql(`
  fragment AttachmentParts on Attachment {
    id name url thumbnailUrl size width height blurhash altText
  }
`);
export type Attachment = ResultOf<typeof AttachmentParts>;

export const CreateUpload = graphql(`
  mutation CreateUpload($fileName: String!, $size: Int!, $purpose: UploadPurpose!) {
    createUpload(input: { fileName: $fileName, size: $size, purpose: $purpose }) { id fileId url }
  }
`);
export type UploadPurpose = VariablesOf<typeof CreateUpload>["purpose"];

export const UploadById = graphql(`
  query UploadById($id: ID!) {
    upload(id: $id) { id fileId url name size offset state refusal isPicture contentType }
  }
`);
export type CheckedUpload = NonNullable<ResultOf<typeof UploadById>["upload"]>;
