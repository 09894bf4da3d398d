// Copying a text: the clipboard where the page may use it, else a selection, as in a page opened as a file.

import { signal } from '@preact/signals';

/** What was copied last, for who hears or looks. */
export const copied = signal('');

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  copied.value = text;
  setTimeout(() => copied.value === text && (copied.value = ''), 1500);
}
