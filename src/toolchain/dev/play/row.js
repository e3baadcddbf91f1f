/**
 * The row "Break it" of `sui-enclave play`: its links open the dapp under other paths, where the dapp's
 * settings name a broken server.
 */
const STYLE = `
  :host { all: initial; display: block; font: 14px/1.4 system-ui, sans-serif; color: #fff; background: #14213d; }
  nav { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: center; padding: 8px 16px; }
  a { color: inherit; padding: 3px 10px; border: 1px solid #5b6b94; border-radius: 999px; text-decoration: none; }
  a:focus-visible { outline: 2px solid #fff; outline-offset: 2px; }
  a[aria-current] { color: #14213d; background: #fff; border-color: #fff; }
  p { margin: 0; flex-basis: 100%; }
`;

const answer = await fetch('/play.json', { cache: 'no-store' });
/** @type {{ path: string, title: string, text: string }[]} */
const cases = await answer.json();
const current = cases.findLast(({ path }) => location.pathname.startsWith(path));

const nav = document.createElement('nav');
nav.setAttribute('aria-label', 'Break it');
const label = document.createElement('strong');
label.textContent = 'Break it';
const links = cases.map(({ path, title }) => {
  const link = document.createElement('a');
  link.href = path;
  link.textContent = title;
  if (path === current?.path) link.setAttribute('aria-current', 'page');
  return link;
});
const text = document.createElement('p');
text.textContent = current?.text ?? '';
nav.append(label, ...links, text);

const host = document.createElement('aside');
const shadow = host.attachShadow({ mode: 'open' });
// The policy of a page may forbid style elements, but not constructed style sheets.
const style = new CSSStyleSheet();
style.replaceSync(STYLE);
shadow.adoptedStyleSheets = [style];
shadow.append(nav);
document.body.prepend(host);
