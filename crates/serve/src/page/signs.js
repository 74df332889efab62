// Signs for characters that cannot be seen.

const SIGNS = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "": "(no text)" };

export const visible = (text) => SIGNS[text] ?? text.replace(/[ \n\t\r]/g, (sign) => SIGNS[sign]);
