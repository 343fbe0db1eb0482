// The page's few signs, drawn as lines.
const PATHS = {
  copy: "M9 9h10v10H9z M5 15V5h10",
  check: "M5 12l5 5L20 7",
  cross: "M6 6l12 12 M18 6L6 18",
  send: "M12 19V5 M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M12 5v14 M6 13l6 6 6-6",
  menu: "M4 7h16 M4 12h16 M4 17h16",
  panel: "M4 5h16v14H4z M14 5v14",
  plus: "M12 5v14 M5 12h14",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1 M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  again: "M4 12a8 8 0 0 1 14-5l2 2 M20 4v5h-5 M20 12a8 8 0 0 1-14 5l-2-2 M4 20v-5h5",
  branch: "M6 4v16 M6 14c0-5 12-3 12-9 M18 3v2",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14z M16 16l4 4",
  play: "M7 5l12 7-12 7z",
  pause: "M8 5v14 M16 5v14",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  first: "M18 5l-7 7 7 7 M7 5v14",
  last: "M6 5l7 7-7 7 M17 5v14",
  download: "M12 4v11 M6 10l6 6 6-6 M5 20h14",
  tool: "M14 4a5 5 0 0 0-4 7l-6 6 3 3 6-6a5 5 0 0 0 7-5l-3 2-3-1-1-3z",
  file: "M6 3h8l5 5v13H6z M14 3v5h5",
  clip: "M19 11l-8 8a5 5 0 0 1-7-7l8-8a3.5 3.5 0 0 1 5 5l-8 8a2 2 0 0 1-3-3l7-7",
  thumb_up: "M7 11v9H4v-9z M7 11l4-7c2 0 3 1 2 6h6l-2 10H7",
  thumb_down: "M7 13V4H4v9z M7 13l4 7c2 0 3-1 2-6h6L17 4H7",
  warn: "M12 4L2 20h20z M12 10v5 M12 17.5v.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
