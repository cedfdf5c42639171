// Ranks the pages that Sphinx's search has found: by how well a page's title, a heading or a keyword of the page fits the question.
// Without it, pages with equal scores come in alphabetical order, and the longest page wins.
const MINOR = new Set(["a", "an", "and", "do", "for", "from", "how", "i", "in", "is", "of", "on", "or", "the", "to", "with"]);
// What is said more often on the pages of a folder is sooner meant there.
const FOLDERS = { "how-to": 4, tutorial: 3, explanation: 2, reference: 0, contributing: -4 };

const wordsOf = (text) =>
  text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word && !MINOR.has(word));

// "refused" and "RefusedError", "tensor" and "tensors" fit.
const fits = (asked, word) => {
  const [short, long] = asked.length < word.length ? [asked, word] : [word, asked];
  return short.length > 2 ? long.startsWith(short) : short === long;
};

// How much of the question is in a text, and of the text in the question: from 0 to 1.
const fit = (question, text) => {
  const words = wordsOf(text);
  const asked = question.filter((one) => words.some((word) => fits(one, word))).length;
  const said = words.filter((word) => question.some((one) => fits(one, word))).length;
  return words.length && question.length ? (asked / question.length) * (0.5 + said / words.length / 2) : 0;
};

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  score: ([page, title, , , score]) => {
    const question = wordsOf(new URLSearchParams(window.location.search).get("q") ?? "");
    const index = Search._index;
    const number = index.docnames.indexOf(page);
    const keywords = Object.entries(index.indexentries)
      .filter(([, places]) => places.some(([file]) => file === number))
      .map(([entry]) => entry);
    const best = Math.max(...[title, ...keywords].map((text) => fit(question, text)));
    return score + 40 * best + (FOLDERS[page.split("/")[0]] ?? 0);
  },
};
