// What keys and pointer do, as an overlay: `?` opens it in every view.

import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';

export const helping = signal(false);

const KEYS: [string, [string, string][]][] = [
  ['Everywhere', [
    ['?', 'this help'],
    ['/', 'search: a part of a name, or a regular expression'],
    ['1 … 6', 'the views, from left to right'],
    ['Alt ←', 'back to what was shown before; the address can be shared'],
  ]],
  ['Flame graph', [
    ['click, Enter', 'zoom to a box'],
    ['double click, O', 'callers and callees of a function'],
    ['← → ↑ ↓', 'from box to box; Home is the whole'],
    ['W S, Ctrl wheel', 'in and out'],
    ['A D, drag', 'left and right'],
    ['C', 'copy the name of the marked box'],
    ['Esc', 'the whole graph'],
  ]],
  ['Timeline', [
    ['W S, Ctrl wheel', 'in and out'],
    ['A D, drag', 'left and right; the wheel alone scrolls the tracks'],
    ['← → ↑ ↓', 'from box to box, with what is there'],
    ['click, Enter', 'a box from edge to edge'],
    ['drag the ruler', 'choose a time: it narrows every view'],
    ['Esc', 'all of the time'],
  ]],
  ['Curves and tables', [
    ['drag a curve', 'choose a time: it narrows every view'],
    ['click a process', 'see it alone; click again for all'],
    ['click a heading', 'sort by it; again, the other way'],
  ]],
];

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  const open = helping.value;
  useEffect(() => {
    if (open) box.current?.showModal();
    else box.current?.close();
  }, [open]);
  return (
    <dialog ref={box} class="help" aria-labelledby="help-title" onClose={() => (helping.value = false)}
      onClick={(e) => e.target === box.current && (helping.value = false)}>
      <header class="card-head">
        <h2 id="help-title">Keys and pointer</h2>
        <button type="button" class="card-aside" onClick={() => (helping.value = false)}>Close</button>
      </header>
      <div class="help-parts">
        {KEYS.map(([title, list]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>{list.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
          </section>
        ))}
      </div>
    </dialog>
  );
}
