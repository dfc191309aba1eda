// Signing this browser in and out. The code of a link is in the fragment of the address: it is removed from the address
// and the history before it is sent, so that it stays in neither.
import { client, messageOf, refused } from './server.js';

const CODE = /^#code=([\w-]{1,200})$/;

// Null if it worked, else why not.
export async function signIn(by: { readonly code: string } | { readonly token: string }): Promise<string | null> {
  try {
    await client.signIn(by);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

// Resolves to false where the address has a code that does not work; the page then says why. A browser that is signed
// in already stays so.
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
