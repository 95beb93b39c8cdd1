/** The Pendula logo: a pendulum over its scale. It swings for a few beats when the connection becomes live. */

export function Logo({ live }: { readonly live: boolean }) {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" data-live={live}>
      <g class="logo-scale" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round">
        <path d="M9 4h14" />
        <path d="M5.5 25.6a24 24 0 0 0 21 0" />
      </g>
      <g class="logo-pendulum">
        <path d="M16 4v14" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" />
        <circle class="logo-bob" cx="16" cy="19.5" r="4" />
      </g>
    </svg>
  );
}
