// Small parts that several views are made of. Texts become text nodes, never markup.

import type { ComponentChildren } from 'preact';

export function Card(props: { title?: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`card ${props.class ?? ''}`}>
      {(props.title || props.aside) && (
        <header class="card-head">
          {props.title && <h2>{props.title}</h2>}
          {props.aside && <div class="card-aside">{props.aside}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

/** One large number and what it is. */
export function Fact(props: { label: string; value: string; note?: string; tone?: 'warn' }) {
  return (
    <div class={`fact ${props.tone ?? ''}`}>
      <dt>{props.label}</dt>
      <dd>
        <span class="fact-value">{props.value}</span>
        {props.note && <span class="fact-note">{props.note}</span>}
      </dd>
    </div>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children && <p class="empty-text">{props.children}</p>}
    </div>
  );
}

/** A share, drawn behind a number. */
export function Share(props: { part: number; whole: number; children: ComponentChildren; tone?: string }) {
  const share = props.whole > 0 ? Math.min(1, Math.max(0, props.part / props.whole)) : 0;
  return (
    <span class={`share ${props.tone ?? ''}`}>
      <span class="share-bar" style={{ width: `${(share * 100).toFixed(2)}%` }} aria-hidden="true" />
      <span class="share-text">{props.children}</span>
    </span>
  );
}

export interface Choice<T extends string> {
  id: T;
  label: string;
  hint?: string;
}

/** A row of buttons of which one is pressed. */
export function Segments<T extends string>(props: {
  label: string;
  choices: Choice<T>[];
  chosen: T;
  choose: (id: T) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.choices.map((c) => (
        <button key={c.id} type="button" aria-pressed={c.id === props.chosen} title={c.hint} onClick={() => props.choose(c.id)}>
          {c.label}
        </button>
      ))}
    </div>
  );
}

/** The last part of a path, the rest told in the title. */
export function Place(props: { text: string }) {
  const slash = props.text.lastIndexOf('/');
  return (
    <span class="place" title={props.text}>
      {slash < 0 ? props.text : props.text.slice(slash + 1)}
    </span>
  );
}

/** An item of a legend. */
export function Swatch(props: { fill: string; text: string }) {
  return (
    <span class="legend-item">
      <span class="swatch" style={{ background: props.fill }} aria-hidden="true" />
      {props.text}
    </span>
  );
}
