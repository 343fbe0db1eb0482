// Fetching for a screen: an older answer never covers a newer one, and what the line swallowed is asked for again.

/** An error of a request, with the answer's status: 0 where no answer came. */
export class RequestFailed extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }

  get refused(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/**
 * A function that has `work` done, one at a time. Asked for meanwhile, it is done once more afterwards, so that the
 * result was read after the last call. A failure of the line is tried again, later each time; a refusal is not.
 */
export function steady(work: () => Promise<void>, { pause = 500, longest = 8000 } = {}): () => Promise<void> {
  let busy = false;
  let again = false;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return async function ask(): Promise<void> {
    again = true;
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    while (again) {
      again = false;
      try {
        await work();
        failures = 0;
      } catch (error) {
        if (!(error instanceof RequestFailed))
          reportError(error); // a mistake of the page's own
        else failures = error.status < 400 || error.status >= 500 ? failures + 1 : 0;
      }
    }
    busy = false;
    if (failures > 0) timer = setTimeout(() => void ask(), Math.min(pause * 2 ** (failures - 1), longest));
  };
}
