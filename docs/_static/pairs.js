"use strict";

// The picker of the page of pairs: two lists of names, and what a conversion between them does.
{
  const { targets, kinds, pairs } = JSON.parse(document.getElementById("pairs").textContent);
  const [form, from, to, answer] = ["picker", "from", "to", "answer"].map(id => document.getElementById(id));
  const fill = (list, names) => list.append(...names.map(name => new Option(name)));

  function show() {
    const kind = kinds[pairs[from.value][targets.indexOf(to.value)]];
    const [effects, memory, back] = kind ?? [];
    if (from.value === to.value) answer.textContent = "It is what was asked for, and returned as it is.";
    else if (!memory) answer.textContent = "Refused by default, or there is no such conversion.";
    else answer.textContent = `Effects: ${effects}. Memory: ${memory}. And back: ${back}.`;
    history.replaceState(null, "", `#${from.value}:${to.value}`);
  }
  fill(from, Object.keys(pairs));
  fill(to, targets);
  [from.value, to.value] = ["torch", "numpy"];
  const [source, target] = location.hash.slice(1).split(":");
  if (source in pairs && targets.includes(target)) [from.value, to.value] = [source, target];
  form.hidden = false;
  form.oninput = show;
  form.onsubmit = event => event.preventDefault();
  show();
}
