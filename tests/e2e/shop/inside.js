() => {
  const host = document.querySelector(".rigctl-product"), seen = [];
  for (const element of [host, ...host.shadowRoot.querySelectorAll("*")]) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    seen.push([element.tagName, Math.round(box.width), Math.round(box.height),
      ...[...style].sort().map((name) => name + ": " + style.getPropertyValue(name))]);
  }
  return JSON.stringify(seen);
}
