// Signs this browser in and out. The code of a link is in the fragment of the address. It is removed from the address
// and the history before it is sent.
import { client, messageOf, refused } from './server.js';

const CODE = /^#code=([\w-]{1,200})$/;

// Resolves to null on success, otherwise to the reason of the refusal.
export async function signIn(
  credentials: { readonly code: string } | { readonly token: string },
): Promise<string | null> {
  try {
    await client.signIn(credentials);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

export function hasCodeInAddress(): boolean {
  return CODE.test(location.hash);
}

// Resolves to false if the code in the address is refused; the page then shows why. A browser that is already signed in
// stays signed in.
export async function useCodeInAddress(): Promise<boolean> {
  const code = CODE.exec(location.hash)?.[1];
  if (code === undefined) return true;
  history.replaceState(history.state, '', location.pathname + location.search);
  const refusal = await signIn({ code });
  if (refusal === null) return true;
  const isSignedIn = await client.request('GET', '/v1/me').then(
    () => true,
    () => false,
  );
  if (!isSignedIn) refused(new Error(refusal));
  return isSignedIn;
}

export async function signOut(): Promise<void> {
  try {
    await client.signOut();
  } catch (error) {
    return refused(error);
  }
  location.assign('/');
}
