// What every part of the page may ask for: the desk it belongs to.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Desk } from "./desk.js";
import type { Session } from "./session.js";

export const DeskContext = createContext<Desk | null>(null);

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (desk === null) throw new Error("the page has no desk");
  return desk;
}

/** The thread that is looked at. */
export const useSession = (): Session => useDesk().session.value;
