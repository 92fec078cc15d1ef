/** Renews this browser's registration. Loaded only in browsers that may show notifications. */
import { type Api, request } from "../api/api";
import type { ViewerUser } from "../session/viewer";
import { currentSubscription, deviceId, registrationOf } from "./browser-push";
import { desktopOwner, turnDesktopOn } from "./desktop/choice";
import { NotificationSettings, RegisterPushDevice } from "./operations";

/** Renews the registration. Ends the subscription if the viewer has no such device, such as after a new sign-in. */
export async function renewRegistration({ direct }: Api, viewer: ViewerUser): Promise<void> {
  const subscription = await currentSubscription();
  if (!subscription) return;
  const id = await deviceId(subscription.endpoint);
  const { pushDevices } = await request(direct, NotificationSettings, {});
  if (!pushDevices.some((device) => device.id === id)) {
    await subscription.unsubscribe();
    return;
  }
  await request(direct, RegisterPushDevice, { input: registrationOf(subscription) });
  // Whoever gets pushes here wants notifications at once, too, unless the person has chosen otherwise.
  if (desktopOwner.get() === null) turnDesktopOn(viewer);
}
