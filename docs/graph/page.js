"use strict";

const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { steps, pairs } = data.routes;
const FONT = 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif';
const losing = new Set(data.losing);
const KINDS = { shares: "memory is shared", copies: "bytes are copied", loses: "a property is lost" };
const MILDEST_FIRST = Object.keys(KINDS);

// Formats by name; by framework its formats and its neighbors; by pair of frameworks the links.
const formats = new Map(data.formats.map(format => [format.name, format]));
const frameworks = new Map();
for (const format of data.formats) {
  if (!frameworks.has(format.group)) frameworks.set(format.group, []);
  frameworks.get(format.group).push(format);
}
const lines = new Map();
for (const link of data.links) {
  const ends = [formats.get(link.source).group, formats.get(link.target).group];
  if (ends[0] === ends[1]) continue;
  const key = JSON.stringify([...ends].sort());
  if (!lines.has(key)) lines.set(key, []);
  lines.get(key).push(link);
}
const neighbors = new Map([...frameworks.keys()].map(name => [name, []]));
for (const key of lines.keys()) {
  const [name, other] = JSON.parse(key);
  neighbors.get(name).push(other);
  neighbors.get(other).push(name);
}

function isMissing(framework) {
  return frameworks.get(framework).every(format => format.state === "missing");
}
function mildest(links) {
  return MILDEST_FIRST.find(kind => links.some(link => link.kind === kind));
}

// ------------------------------------------------------------------ where the frameworks stand

const FONT_SIZE = 13, ROW = 20, MARGIN = 8;
const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, weight = "normal") {
  ruler.font = `${weight} ${FONT_SIZE}px ${FONT}`;
  return ruler.measureText(text).width;
}

/** Return what a format is called inside the box of its framework. */
function shortName(format) {
  const prefix = `${format.group}.`;
  return format.name.startsWith(prefix) ? format.name.slice(prefix.length) : format.name;
}
function caption(framework) {
  return isMissing(framework) ? `${framework} (not installed)` : framework;
}

/** Return the sizes of the frameworks' boxes, their captions included. */
function boxSizes() {
  const sizes = new Map();
  for (const [name, members] of frameworks) {
    const widths = members.map(format => textWidth(shortName(format)));
    const width = Math.max(textWidth(caption(name), "bold"), ...widths) + 2 * MARGIN;
    sizes.set(name, { width, height: (members.length + 1) * ROW });
  }
  return sizes;
}

/** Return the frameworks in the order in which layers show them.
 *
 * The best connected one comes after its neighbors that have others, and before those that have no
 * other: the drawing is then about as wide as it is high. */
function layerOrder() {
  const count = name => neighbors.get(name).length;
  const byCount = [...frameworks.keys()].sort(
    (name, other) => count(other) - count(name) || (name < other ? -1 : 1));
  const [hub, ...others] = byCount;
  const leaves = others.filter(name => count(name) < 2);
  return [...others.filter(name => count(name) >= 2), ...(hub === undefined ? [] : [hub]), ...leaves];
}

/** Lay the boxes and the lines between them out in layers. */
function layers(sizes, upright) {
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: upright ? "TB" : "LR", nodesep: 6, ranksep: 20, edgesep: 1 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const [name, size] of sizes) layout.setNode(name, { ...size });
  const order = new Map(layerOrder().map((name, place) => [name, place]));
  for (const [key, links] of lines) {
    const ends = JSON.parse(key).sort((name, other) => order.get(name) - order.get(other));
    layout.setEdge(...ends, { weight: links.length });
  }
  dagre.layout(layout);
  return layout;
}

function elements() {
  const stage = $("stage"), sizes = boxSizes();
  const layout = layers(sizes, stage.clientWidth < stage.clientHeight);
  const boxes = [...frameworks.keys()].flatMap(name => box(name, layout.node(name)));
  return [...boxes, ...[...lines].map(([key, links]) => line(key, links, layout))];
}

/** Return the box of a framework: its caption, and below it a row for each format. */
function box(framework, { x, y, width, height }) {
  const missing = isMissing(framework) ? " missing" : "", parent = `framework ${framework}`;
  const child = (id, label, row) => ({
    data: { id, framework, parent, label, width, shift: MARGIN - width },
    position: { x, y: y - height / 2 + (row + 0.5) * ROW }, pannable: true,
  });
  const head = child(`caption ${framework}`, caption(framework), 0);
  const rows = frameworks.get(framework).map((format, row) => {
    const node = child(`format ${format.name}`, shortName(format), row + 1);
    return { ...node, data: { ...node.data, format: format.name }, classes: `format${missing}` };
  });
  return [{ data: { id: parent, framework }, pannable: true, classes: `framework${missing}` },
    { ...head, classes: `caption${missing}` }, ...rows];
}

/** Return the line between two frameworks; it has a head only where nothing leads back. */
function line(key, links, layout) {
  const sources = [...new Set(links.map(link => formats.get(link.source).group))];
  const [source] = sources, target = JSON.parse(key).find(name => name !== source);
  const start = layout.node(source), end = layout.node(target);
  const edge = layout.edge(source, target), points = [...(edge ?? layout.edge(target, source)).points];
  if (!edge) points.reverse();
  const inner = points.slice(1, -1);
  return {
    data: { id: `line ${key}`, line: key, source: `framework ${source}`, target: `framework ${target}`,
      leave: offset(points[0], start), enter: offset(points.at(-1), end), points: inner,
      ...bends(inner, start, end) },
    classes: `line ${mildest(links)}${sources.length === 1 ? " one-way" : ""}`,
  };
}
function offset(point, middle) {
  return `${point.x - middle.x}px ${point.y - middle.y}px`;
}

/** Return where the bends of a line are, as seen from the straight line between its ends. */
function bends(points, start, end) {
  const x = end.x - start.x, y = end.y - start.y, square = x * x + y * y;
  return {
    weights: points.map(point => ((point.x - start.x) * x + (point.y - start.y) * y) / square),
    distances: points.map(point =>
      ((point.y - start.y) * x - (point.x - start.x) * y) / Math.sqrt(square)),
  };
}

// ------------------------------------------------------------------ the picture

function style() {
  const computed = getComputedStyle(document.documentElement);
  const color = name => computed.getPropertyValue(`--${name}`).trim();
  const kinds = { shares: "solid", copies: "dashed", loses: "dotted" };
  return [
    { selector: "node", style: { "font-family": FONT, "font-size": FONT_SIZE, color: color("ink"),
      shape: "round-rectangle", "overlay-opacity": 0, "text-events": "yes" } },
    { selector: ".framework", style: { padding: 0, "background-color": color("card"),
      "border-color": color("edge"), "border-width": 1 } },
    { selector: ".caption", style: { "font-weight": "bold", "background-color": color("head") } },
    { selector: ".format", style: { "background-opacity": 0 } },
    { selector: ".caption, .format", style: { label: "data(label)", width: "data(width)", height: ROW,
      "text-valign": "center", "text-halign": "right",
      "text-margin-x": "data(shift)" } },
    { selector: ".framework.missing", style: { "border-style": "dashed", "border-color": color("soft"),
      "border-width": 1.5 } },
    { selector: "edge", style: { "overlay-opacity": 0, width: 1.6, opacity: 0.5 } },
    { selector: ".line, .bent", style: { "z-compound-depth": "bottom", "segment-radii": 30,
      "curve-style": "round-segments", "edge-distances": "node-position",
      "segment-weights": "data(weights)", "segment-distances": "data(distances)" } },
    { selector: ".straight", style: { "z-compound-depth": "bottom", "curve-style": "straight" } },
    { selector: ".bowed", style: { "z-compound-depth": "top", "curve-style": "unbundled-bezier",
      "edge-distances": "endpoints", "control-point-distances": "data(bow)",
      "control-point-weights": 0.5 } },
    { selector: ".line, .hop, .out", style: { "source-endpoint": "data(leave)",
      "target-endpoint": "data(enter)" } },
    ...Object.entries(kinds).map(([kind, pattern]) => ({ selector: `edge.${kind}`, style: {
      "line-color": color(kind), "line-style": pattern, "line-dash-pattern": [7, 4],
      "target-arrow-color": color(kind) } })),
    { selector: ".one-way", style: { "target-arrow-shape": "triangle" } },
    { selector: ".faint", style: { opacity: 0.1 } },
    { selector: ".near", style: { opacity: 0.95, width: 2.6 } },
    { selector: ".out, .hop", style: { "target-arrow-shape": "triangle" } },
    { selector: ".out", style: { opacity: 0.9, "arrow-scale": 0.8 } },
    { selector: ".aside", style: { opacity: 0.08 } },
    { selector: ".format.far", style: { "text-opacity": 0.35 } },
    { selector: ".format.found", style: { "background-opacity": 1, "background-color": color("found") } },
    { selector: ".format.stop", style: { "background-opacity": 0.3, "background-color": color("mark") } },
    { selector: ".format.end", style: { "background-opacity": 1, "background-color": color("mark"),
      color: color("card"), "text-opacity": 1 } },
    { selector: ".hop", style: { opacity: 1, width: 3, "line-color": color("mark"),
      "target-arrow-color": color("mark"), color: color("ink"), label: "data(label)",
      "font-family": FONT, "font-size": FONT_SIZE - 1, "text-background-color": color("paper"),
      "text-background-opacity": 0.9, "text-background-padding": 2,
      "text-background-shape": "round-rectangle" } },
  ];
}

/** The picture; a global, so that a console or a test can ask where things are. */
const graph = window.graph = cytoscape({
  container: $("stage"), elements: elements(), style: style(), layout: { name: "preset" },
  minZoom: 0.1, maxZoom: 4, boxSelectionEnabled: false, autounselectify: true, autoungrabify: true,
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => graph.style(style()));

const row = name => graph.getElementById(`format ${name}`);
const SMALLEST_TEXT = 9.5, LARGEST_ZOOM = 1.4;

function showAll() {
  graph.fit(undefined, 14);
  if (graph.zoom() > LARGEST_ZOOM) {
    graph.zoom(LARGEST_ZOOM);
    graph.center();
  }
}
/** Show all, or the surroundings of the best connected framework where all would be too small. */
function start() {
  showAll();
  if (!frameworks.size || graph.zoom() * FONT_SIZE >= SMALLEST_TEXT) return;
  graph.zoom(SMALLEST_TEXT / FONT_SIZE);
  const hub = [...neighbors].sort((one, other) => other[1].length - one[1].length)[0][0];
  graph.center(graph.getElementById(`framework ${hub}`));
  keepInside();
}
/** Move the view so that it shows no more beside the graph than has to be. */
function keepInside() {
  const all = graph.elements().boundingBox(), shown = graph.extent(), margin = 14 / graph.zoom();
  const beyond = (first, last, start, end) => {
    if (last - first >= end - start + 2 * margin) return (first + last - start - end) / 2;
    return last > end + margin ? last - end - margin : Math.min(0, first - start + margin);
  };
  graph.panBy({ x: graph.zoom() * beyond(shown.x1, shown.x2, all.x1, all.x2),
    y: graph.zoom() * beyond(shown.y1, shown.y2, all.y1, all.y2) });
}
function zoom(factor) {
  graph.zoom({ level: graph.zoom() * factor,
    renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
}
$("closer").onclick = () => zoom(4 / 3);
$("farther").onclick = () => zoom(3 / 4);
$("reset").onclick = showAll;

window.addEventListener("keydown", event => {
  if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
  const moves = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const move = event.target.closest("aside") ? undefined : moves[event.key];
  if (move) { graph.panBy({ x: move[0] * 80, y: move[1] * 80 }); event.preventDefault(); }
  else if (event.key === "+") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") showAll();
  else if (event.key === "Escape") ask("", "");
  else if (event.key === "/") { event.preventDefault(); $("search").focus(); }
});

// ------------------------------------------------------------------ words for the panel

function element(tag, text = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}
function duration(seconds) {
  for (const [limit, factor, unit] of [[1e-3, 1e6, "µs"], [1, 1e3, "ms"]])
    if (seconds < limit) return `${+(seconds * factor).toPrecision(3)} ${unit}`;
  return `${+seconds.toPrecision(3)} s`;
}
function bytes(count) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (count < 1024) return `${unit === "B" ? count : count.toFixed(1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} TiB`;
}
function stepKind(step) {
  if (step.effects.some(effect => losing.has(effect))) return "loses";
  return step.written ? "copies" : "shares";
}
/** Return a route as its value, seconds, steps, and the worst that one of the steps does. */
function routeOf(source, target) {
  const packed = pairs[`${source} ${target}`];
  if (!packed) return null;
  const [value, seconds, places] = packed, taken = places.map(place => steps[place]);
  const kinds = taken.map(stepKind);
  const worst = [...MILDEST_FIRST].reverse().find(kind => kinds.includes(kind)) ?? "shares";
  return { value, seconds, steps: taken, kind: worst };
}
function describe(format) {
  const state = format.state === "missing" ? "not installed" : "installed";
  return `${format.layout}, ${format.dtypes} dtypes, on ${format.devices.join(", ")}; ${state}; ` +
    `declared by ${format.distribution}`;
}

function welcome() {
  return [element("h2", "Click a format, then another"),
    element("p", "The page shows the route between the two and what it costs. Click a framework or a " +
      "line for what leads where. Drag to move, turn the wheel to zoom."),
    element("p", "/ searches, Escape starts over, + − 0 and the arrows move the view.", "soft")];
}
function aboutFormat(name) {
  return [element("h2", name), element("p", describe(formats.get(name)), "soft"),
    element("p", "Click the format to convert it to. The list says what each conversion does.")];
}
function aboutRoute(source, target) {
  const command = element("p"), route = routeOf(source, target);
  const heading = element("h2", `${source} → ${target}`);
  command.append(element("code", `interop plan ${source} ${target}`));
  if (!route) {
    const reason = "No route is permitted by default for a plain value. This command says why:";
    return [heading, element("p", reason), command];
  }
  const memory = route.steps.some(step => step.written) ? "bytes are copied" : "zero-copy";
  const summary = `${route.value}: ${memory}, ${duration(route.seconds)} estimated`;
  const list = element("ol");
  for (const step of route.steps) {
    const item = element("li", "", `hop ${stepKind(step)}`);
    const written = step.written ? `; ${bytes(step.written)} written` : "";
    item.append(element("b", step.step), element("div", `→ ${step.to}`),
      element("div", `${step.effects.join(", ") || "view"}; ${duration(step.seconds)}${written}`),
      element("small", step.by));
    list.append(item);
  }
  return [heading, element("p", summary), list, command];
}
function aboutFramework(name) {
  const members = frameworks.get(name), list = element("ul");
  for (const other of [...neighbors.get(name)].sort()) {
    const links = lines.get(JSON.stringify([name, other].sort()));
    const away = links.filter(link => formats.get(link.source).group === name);
    const back = links.length - away.length;
    const arrow = away.length && back ? "⇄" : away.length ? "→" : "←";
    const kind = mildest(away.length ? away : links);
    const item = element("li", "", kind);
    item.append(element("b", `${arrow} ${other}`), element("div", `at best ${KINDS[kind]}`, "soft"));
    list.append(item);
  }
  const count = members.length === 1 ? "1 format" : `${members.length} formats`;
  const state = isMissing(name) ? "not installed" : "installed";
  const origins = [...new Set(members.map(format => format.distribution))].join(", ");
  return [element("h2", name), element("p", `${count}; ${state}; declared by ${origins}`, "soft"), list];
}
function aboutLine(key) {
  const list = element("ul");
  for (const link of lines.get(key)) {
    const item = element("li", "", link.kind);
    item.append(element("b", `${link.source} → ${link.target}`),
      element("div", `${link.names.join(", ")}: ${KINDS[link.kind]}`, "soft"));
    list.append(item);
  }
  return [element("h2", JSON.parse(key).join(" and ")), list];
}

// ------------------------------------------------------------------ the list of formats

const buttons = new Map();
for (const [name, members] of frameworks) {
  const section = element("section", "", isMissing(name) ? "missing" : "");
  const heading = element("button", name, "framework");
  heading.dataset.framework = name;
  heading.append(element("small", isMissing(name) ? "not installed" : ""));
  heading.onclick = () => { ask("", ""); show(aboutFramework(name)); emphasize(name); };
  section.append(heading);
  for (const format of members) {
    const button = element("button", format.name, "format");
    button.dataset.format = format.name;
    button.append(element("small"));
    button.onclick = () => choose(format.name);
    buttons.set(format.name, button);
    section.append(button);
  }
  $("list").append(section);
}
/** Say beside each format what the conversion to it does, or how it stores its numbers. */
function annotate() {
  for (const [name, button] of buttons) {
    const note = button.querySelector("small"), route = from && routeOf(from, name);
    note.className = route ? route.kind : "";
    if (!from || name === from) note.textContent = formats.get(name).layout;
    else if (!route) note.textContent = "no route";
    else {
      const effects = new Set(route.steps.flatMap(step => step.effects));
      note.textContent = `${[...effects].join(", ") || "view"}; ${duration(route.seconds)}`;
    }
  }
}

// ------------------------------------------------------------------ asking for a route

let from = "", to = "";

function show(content) {
  $("panel").replaceChildren(...content);
}
/** Take a format for the source, or for the target if only that is missing. */
function choose(name) {
  if (from && !to) ask(from, name);
  else ask(name, "");
}
function ask(source, target) {
  from = source;
  to = source === target ? "" : target;
  $("from").value = from;
  $("to").value = to;
  graph.batch(draw);
  annotate();
  show(to ? aboutRoute(from, to) : from ? aboutFormat(from) : welcome());
  const fragment = from ? `#${encodeURIComponent(to ? `${from} ${to}` : from)}` : "";
  history.replaceState(null, "", fragment || location.pathname + location.search);
}
function draw() {
  graph.$(".hop, .out").remove();
  graph.elements().removeClass("end stop far faint near");
  for (const button of buttons.values()) button.classList.remove("end", "stop");
  if (!from) return;
  graph.$(".line").addClass("faint");
  for (const name of [from, to]) if (name) mark(name, "end");
  if (to) drawRoute();
  else drawLinks();
}
function mark(name, kind) {
  row(name).addClass(kind);
  buttons.get(name).classList.add(kind);
}
function drawRoute() {
  let current = from;
  for (const step of routeOf(from, to)?.steps ?? []) {
    if (step.to !== current) {
      graph.add(arrow(current, step.to, "hop", step.effects.join(", ") || "view"));
      if (step.to !== to) mark(step.to, "stop");
    }
    current = step.to;
  }
  reveal(graph.$(".format.end, .format.stop"));
}
/** Show all of some formats, if any of them is outside of what is shown. */
function reveal(nodes) {
  const shown = graph.extent(), box = nodes.boundingBox();
  if (box.x1 >= shown.x1 && box.x2 <= shown.x2 && box.y1 >= shown.y1 && box.y2 <= shown.y2) return;
  graph.fit(nodes, 40);
  if (graph.zoom() > LARGEST_ZOOM) {
    graph.zoom(LARGEST_ZOOM);
    graph.center(nodes);
  }
}
/** Return an arrow between two formats, along the line between their frameworks if there is one. */
function arrow(source, target, classes, label = "") {
  const start = row(source), end = row(target);
  const names = [start.data("framework"), end.data("framework")];
  const ends = { source: start.id(), target: end.id(), label };
  if (names[0] === names[1]) {
    const bow = [end.position().y > start.position().y ? -30 : 30];
    return { data: { ...ends, bow, leave: "90deg", enter: "90deg" }, classes: `${classes} bowed` };
  }
  const along = graph.getElementById(`line ${JSON.stringify([...names].sort())}`);
  const points = [...(along.data("points") ?? [])];
  if (along.data("source") !== `framework ${names[0]}`) points.reverse();
  const side = (node, point) => point.x >= node.position().x ? "90deg" : "270deg";
  return { data: { ...ends, ...bends(points, start.position(), end.position()),
    leave: side(start, points[0] ?? end.position()),
    enter: side(end, points.at(-1) ?? start.position()) },
  classes: `${classes} ${points.length ? "bent" : "straight"}` };
}
/** Draw what leads directly from the chosen format, and fade what nothing leads to. */
function drawLinks() {
  const links = data.links.filter(link => link.source === from);
  graph.add(links.map(link => arrow(from, link.target, `out ${link.kind}`)));
  for (const name of formats.keys())
    if (name !== from && !pairs[`${from} ${name}`]) row(name).addClass("far");
}

function emphasize(framework) {
  graph.$(".line").removeClass("near");
  if (framework) graph.getElementById(`framework ${framework}`).connectedEdges(".line").addClass("near");
}
graph.on("tap", ".format", event => choose(event.target.data("format")));
graph.on("tap", ".framework, .caption", event => {
  const name = event.target.data("framework");
  ask("", "");
  show(aboutFramework(name));
  emphasize(name);
});
graph.on("tap", ".line", event => {
  ask("", "");
  show(aboutLine(event.target.data("line")));
  event.target.addClass("near");
});
graph.on("mouseover", ".format, .framework, .caption, .line", event => {
  $("stage").classList.add("clickable");
  const key = event.target.data("line");
  if (key) $("stage").title = lines.get(key).map(link => `${link.source} → ${link.target}`).join("\n");
  else if (!from) emphasize(event.target.data("framework"));
});
graph.on("mouseout", ".format, .framework, .caption, .line", () => {
  $("stage").classList.remove("clickable");
  $("stage").removeAttribute("title");
  if (!from) emphasize("");
});
for (const id of ["from", "to"]) {
  $(id).append(new Option("—", ""), ...data.formats.map(format => new Option(format.name)));
  $(id).onchange = () => ask($("from").value, $("from").value ? $("to").value : "");
}
$("swap").onclick = () => { if (to) ask(to, from); };

// ------------------------------------------------------------------ searching

/** Mark the formats whose names hold what is typed, and return the first of them. */
function search() {
  const text = $("search").value.trim().toLowerCase();
  let first = "";
  for (const [name, button] of buttons) {
    const matches = Boolean(text) && name.toLowerCase().includes(text);
    button.classList.toggle("found", matches);
    button.hidden = Boolean(text) && !matches;
    row(name).toggleClass("found", matches);
    if (matches && !first) first = name;
  }
  for (const section of $("list").children)
    section.hidden = !section.querySelector(".format:not([hidden])");
  filter(text);
  return first;
}
/** Leave in the picture the frameworks of the formats that are found, and what they are linked with. */
function filter(text) {
  const cards = graph.nodes().filter(node => node.id().startsWith("framework "));
  const found = cards.filter(card => card.descendants(".found").nonempty());
  const near = found.union(found.connectedEdges()).union(found.neighborhood());
  graph.elements().removeClass("aside");
  if (text && found.nonempty()) graph.elements().difference(near.union(near.descendants())).addClass("aside");
}
$("search").addEventListener("input", search);
$("search").addEventListener("keydown", event => {
  if (event.key === "Escape") { $("search").value = ""; search(); }
  if (event.key !== "Enter") return;
  const name = search();
  if (!name) return;
  graph.center(row(name));
  choose(name);
});

start();
const linked = decodeURIComponent(location.hash.slice(1)).split(" ").filter(name => formats.has(name));
ask(linked[0] ?? "", linked[1] ?? "");
