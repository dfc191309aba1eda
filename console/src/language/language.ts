// Selects the catalogue of the console's texts. To add a language, write a catalogue of the type `Catalogue` and list
// it here. Text from engines, agents and people is shown as it is and is never translated.
import { en } from './en.js';

type Catalogue = typeof en;

const CATALOGUES: Readonly<Record<string, Catalogue>> = { en };

// The first language of the browser that has a catalogue, otherwise English.
const tag = navigator.languages.map((name) => name.split('-', 1)[0] ?? '').find((name) => name in CATALOGUES) ?? 'en';

document.documentElement.lang = tag;

export const t: Catalogue = CATALOGUES[tag] ?? en;
