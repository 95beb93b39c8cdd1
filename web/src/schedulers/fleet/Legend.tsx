/** What the colours and shapes in the picture of the hall mean. */

const MARKS: readonly { readonly kind: string; readonly words: string }[] = [
  { kind: "drives", words: "truck" },
  { kind: "waits", words: "truck that waits" },
  { kind: "stopped", words: "truck that is stopped" },
  { kind: "load", words: "load" },
  { kind: "occupied", words: "occupied" },
  { kind: "granted", words: "granted" },
  { kind: "requested", words: "requested" },
  { kind: "stop", words: "stop line" },
  { kind: "section", words: "dead end or section: few at a time" },
  { kind: "zone", words: "node held to turn or pass" },
  { kind: "station", words: "station" },
  { kind: "parking", words: "parking" },
];

export function Legend() {
  return (
    <p class="legend hall-legend" data-testid="hall-legend">
      {MARKS.map(({ kind, words }) => (
        <span key={kind} class="legend-item">
          <span class="hall-mark" data-kind={kind} aria-hidden="true" /> {words}
        </span>
      ))}
      <span class="legend-item">○ end of the grant</span>
      <span class="legend-item">┄▸ waits for</span>
    </p>
  );
}
