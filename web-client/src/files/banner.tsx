/** The wide picture at the top of the page of a person or a community. Takes its room before the picture is loaded. */
import { usePicture } from "./pictures";

export function Banner({ path }: { path: string }) {
  const picture = usePicture(path);
  return (
    <div data-banner className="aspect-3/1 w-full overflow-hidden rounded-card bg-hover">
      {picture && <img src={picture} alt="" draggable={false} className="size-full object-cover" />}
    </div>
  );
}
