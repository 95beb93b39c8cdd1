/** The legend of the map. */

const MARKS: readonly { readonly kind: string; readonly label: string }[] = [
  { kind: "drives", label: "truck" },
  { kind: "waits", label: "waiting truck" },
  { kind: "stopped", label: "stopped truck" },
  { kind: "load", label: "load" },
  { kind: "occupied", label: "occupied" },
  { kind: "granted", label: "granted" },
  { kind: "requested", label: "requested" },
  { kind: "stop", label: "stop line" },
  { kind: "section", label: "dead end or section with limited capacity" },
  { kind: "zone", label: "reserved node" },
  { kind: "station", label: "station" },
  { kind: "parking", label: "parking" },
];

export function Legend() {
  return (
    <p class="legend hall-legend" data-testid="hall-legend">
      {MARKS.map(({ kind, label }) => (
        <span key={kind} class="legend-item">
          <span class="hall-mark" data-kind={kind} aria-hidden="true" /> {label}
        </span>
      ))}
      <span class="legend-item">○ end of grant</span>
      <span class="legend-item">┄▸ waits for</span>
    </p>
  );
}
