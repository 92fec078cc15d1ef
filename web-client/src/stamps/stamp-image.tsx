/** The picture of a stamp. While it loads and after its removal, the name is shown in its place. */
import { type RefObject, useEffect, useRef, useState } from "react";
import { usePicture } from "../files/pictures";

interface Props {
  /** Path of the picture: a file of the organization, which needs the viewer's credential, or one of the program. */
  path: string;
  /** Empty if the name is written beside the picture. */
  name: string;
  /** The size of the picture. */
  className: string;
}

export function StampImage({ path, name, className }: Props) {
  const isFile = path.startsWith("/files/");
  const route = useRef<HTMLSpanElement>(null);
  const wasVisible = useWasVisible(route);
  const loaded = usePicture(isFile && wasVisible ? path : null);
  const source = isFile ? loaded : path;
  if (source) return <img src={source} alt={name} className={`inline-block object-contain ${className}`} />;
  return (
    <span ref={route} className={`inline-flex items-center justify-center overflow-hidden ${className}`}>
      {name}
    </span>
  );
}

/** Returns whether the element has been visible, so that a long list loads only the pictures that a person sees. */
function useWasVisible(route: RefObject<Element | null>): boolean {
  const [wasVisible, setWasVisible] = useState(false);
  useEffect(() => {
    if (route.current === null) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setWasVisible(true);
    });
    observer.observe(route.current);
    return () => observer.disconnect();
  }, [route]);
  return wasVisible;
}
