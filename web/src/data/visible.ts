// A browser has six connections for a server, all its tabs together: pages that nobody looks at leave them to others.

/** Calls `shown` and `hidden` in turns, the first at once unless the page is hidden; gives what ends it. */
export function whileVisible(shown: () => void, hidden: () => void): () => void {
  let on = false;
  const leave = () => {
    if (on) hidden();
    on = false;
  };
  const look = () => {
    if (document.visibilityState === 'hidden') return leave();
    if (!on) shown();
    on = true;
  };
  document.addEventListener('visibilitychange', look);
  window.addEventListener('pageshow', look);
  window.addEventListener('pagehide', leave);
  look();
  return () => {
    document.removeEventListener('visibilitychange', look);
    window.removeEventListener('pageshow', look);
    window.removeEventListener('pagehide', leave);
    leave();
  };
}

const PLACES = 2;

/** Keeps one of few places for pages that stay connected though hidden, until `done`; false: none was free. */
async function takePlace(done: Promise<void>): Promise<boolean> {
  for (let i = 0; i < PLACES && navigator.locks; i++) {
    const got = await new Promise<boolean>((tell) =>
      void navigator.locks.request(`sonde hidden ${i}`, { ifAvailable: true }, (lock) => {
        tell(lock !== null);
        return lock ? done : undefined;
      }));
    if (got) return true;
  }
  return false;
}

/** As above, connected to begin with, to what may end meanwhile: the first few pages that are hidden stay as if they were shown. */
export function whileConnected(shown: () => void, hidden: () => void): () => void {
  let on = false;
  let back = () => {};
  const come = () => {
    back();
    if (!on) shown();
    on = true;
  };
  const go = () => {
    let gone = true;
    const done = new Promise<void>((resolve) => (back = () => ((gone = false), resolve())));
    void takePlace(done).then((stays) => {
      if (stays || !gone) return;
      on = false;
      hidden();
    });
  };
  const end = whileVisible(come, go);
  if (!on) {
    on = true;
    go();
  }
  return end;
}
