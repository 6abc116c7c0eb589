// Finds runs by words: each must be in the scenario, the rig, a tag, the date, the title, the status, or the id.
const MOST = 50;
const texts = RUNS.map((run) => [run[1], run[2], run[3], ...run[4], run[5], run[6], run[7]].join("\n").toLowerCase());
const input = document.getElementById("words");
const list = document.getElementById("found");
const count = document.getElementById("count");

function item(run) {
  const [page, date, scenario, rig, tags, , status, id, answer] = run;
  const made = document.createElement("li");
  const link = document.createElement("a");
  link.href = page.split("/").map(encodeURIComponent).join("/");
  link.textContent = `${date} ${scenario} on ${rig}`;
  const more = document.createElement("span");
  more.className = "small";
  more.textContent = [id, status, ...tags].join(" · ");
  const said = document.createElement("p");
  said.className = "small";
  said.textContent = answer;
  made.append(link, " ", more, said);
  return made;
}

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? RUNS.filter((_, at) => words.every((word) => texts[at].includes(word))) : [];
  list.replaceChildren(...found.slice(0, MOST).map(item));
  const more = found.length > MOST ? `, the latest ${MOST} below` : "";
  count.textContent = words.length ? `${found.length} ${found.length === 1 ? "run" : "runs"}${more}` : "";
}

document.getElementById("search").hidden = false;
input.addEventListener("input", search);
const asked = decodeURIComponent(location.hash.replace(/^#search=/, ""));
if (location.hash.startsWith("#search=")) {
  input.value = asked;
}
search();
