(root) => {
  const seen = [];
  for (const element of root.querySelectorAll("*")) {
    if (element.closest(".rigctl-product")) continue;
    for (const pseudo of [null, "::before", "::marker"]) {
      const style = getComputedStyle(element, pseudo);
      const values = [...style].sort().map((name) => name + ": " + style.getPropertyValue(name));
      seen.push([element.tagName + (pseudo || ""), values]);
    }
  }
  return JSON.stringify(seen);
}
