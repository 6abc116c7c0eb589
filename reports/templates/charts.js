// Shows the values of charts under the pointer or by arrow keys, at the same place in all charts with that axis, and
// hides series by their key. An axis is [title, kind, low, high, place, size]: rigctl/report/charts/svg.py.
(() => {
	"use strict";
	const MOST = 8; // series that are told
	const make = (name, text, kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });
	const box = make("div", "", "reading");
	box.setAttribute("role", "status");
	document.body.append(box);

	const by = { log2: Math.log, log10: Math.log, percentile: (value) => -Math.log(100 - value) };
	const share = ([, kind, low, high], value) => {
		const [at, from, to] = [value, low, high].map(by[kind] || Number);
		return (at - from) / (to - from);
	};
	const across = (axis, x) => axis[4] + share(axis, x) * axis[5];

	const charts = [...document.querySelectorAll("svg[data-axis]")].map((svg) => {
		const axis = JSON.parse(svg.dataset.axis);
		const series = [];
		for (const panel of svg.querySelectorAll("[data-panel]")) {
			const up = JSON.parse(panel.dataset.panel);
			let xs = [];
			for (const mark of panel.querySelectorAll("[data-y]")) {
				if (mark.dataset.x) xs = mark.dataset.x.split(" ").map(Number);
				const points = mark.dataset.y.split(" ").map((text, at) => ({ x: xs[at], y: +text, text, top: up[4] + (1 - share(up, +text)) * up[5] }));
				const steps = xs.slice(1).map((x, at) => x - xs[at]).filter((step) => step > 0);
				series.push({ mark, up, points, near: 0.51 * Math.min(1e99, ...steps), colour: mark.getAttribute("class") });
			}
		}
		return { svg, axis, series, figure: svg.closest("figure") };
	});

	// Points of the series that are shown, at x or anywhere.
	const points = (chart, x) =>
		chart.series
			.filter(({ mark }) => !mark.classList.contains("off"))
			.flatMap((one) => {
				const found = x === undefined ? one.points : one.points.filter((point) => Math.abs(point.x - x) <= one.near).slice(0, 1);
				return found.map((point) => ({ ...point, ...one }));
			});

	const cursor = (chart, x) => {
		chart.svg.querySelector(".cursor")?.remove();
		const at = share(chart.axis, x);
		if (!(at >= 0 && at <= 1)) return;
		const left = across(chart.axis, x).toFixed(1);
		const lines = chart.series.map(({ up }) => `M${left} ${up[4]}v${up[5]}`);
		const dots = points(chart, x).filter(({ y }) => y === y);
		const made = document.createElementNS(chart.svg.namespaceURI, "g");
		made.setAttribute("class", "cursor");
		made.innerHTML = `<path class="axis" d="${lines.join("")}"/>` +
			dots.map(({ colour, top }) => `<path class="${colour}" stroke-width="5" d="M${left} ${top.toFixed(1)}h0"/>`).join("");
		chart.svg.append(made);
	};

	const hide = () => {
		box.replaceChildren();
		for (const chart of charts) cursor(chart, (chart.at = NaN));
	};

	const show = (chart, x, height) => {
		hide();
		chart.at = x;
		const { svg, axis } = chart;
		for (const other of charts) if (other.axis[0] + other.axis[1] === axis[0] + axis[1]) cursor(other, x);
		box.append(make("b", `${x} ${axis[0]}`));
		const all = points(chart, x);
		const far = ({ y, top }) => (y === y ? Math.abs(top - height) : 1e9);
		const told = [...all].sort((one, other) => far(one) - far(other)).slice(0, MOST);
		let panel;
		for (const { mark, up, y, text, colour } of all.filter((one) => told.includes(one))) {
			if (panel !== up) box.append(make("p", (panel = up)[0], "small"));
			const line = make("p", "");
			line.append(make("span", "", `swatch ${colour}`), make("span", mark.dataset.name), make("span", y === y ? text : "–"));
			box.append(line);
		}
		if (all.length > MOST) box.append(make("p", `the ${MOST} nearest of ${all.length}`, "small"));
		const place = svg.getBoundingClientRect();
		const at = place.left + (across(axis, x) * place.width) / svg.viewBox.baseVal.width;
		const right = at + 14 + box.offsetWidth < document.documentElement.clientWidth;
		box.style.left = `${scrollX + Math.max(4, right ? at + 14 : at - 14 - box.offsetWidth)}px`;
		box.style.top = `${scrollY + place.top + 8}px`;
	};

	for (const chart of charts) {
		const { svg, axis, figure } = chart;
		const point = (event) => {
			const place = svg.getBoundingClientRect();
			const scale = svg.viewBox.baseVal.width / place.width;
			const left = (event.clientX - place.left) * scale;
			const far = ({ x }) => Math.abs(across(axis, x) - left);
			const found = points(chart).reduce((best, one) => (best && far(best) <= far(one) ? best : one), null);
			if (found) show(chart, found.x, (event.clientY - place.top) * scale);
		};
		svg.addEventListener("pointermove", point);
		svg.addEventListener("pointerdown", point);
		svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
		figure.tabIndex = 0;
		figure.addEventListener("blur", hide);
		figure.addEventListener("keydown", (event) => {
			const xs = [...new Set(points(chart).map(({ x }) => x))].sort((one, other) => one - other);
			const [at, last] = [xs.indexOf(chart.at), xs.length - 1];
			if (!svg.getClientRects()[0]) return; // the other of a figure's two widths
			const to = { ArrowRight: at + 1, ArrowLeft: at < 0 ? last : at - 1, Home: 0, End: last }[event.key];
			if (event.key === "Escape") hide();
			if (to === undefined || last < 0) return;
			event.preventDefault();
			show(chart, xs[Math.max(0, Math.min(last, to))], 0);
		});
	}
	document.addEventListener("pointerdown", (event) => event.target.closest("svg[data-axis]") || hide());

	for (const key of document.querySelectorAll(".legend li")) {
		const all = key.closest(".group, section").querySelectorAll("[data-name]");
		const own = [...all].filter((mark) => mark.dataset.name === key.textContent);
		if (!own.length) continue;
		let on = true;
		const button = make("button", "");
		button.setAttribute("aria-pressed", on);
		button.append(...key.childNodes);
		key.append(button);
		button.addEventListener("click", () => {
			button.setAttribute("aria-pressed", (on = !on));
			for (const mark of own) mark.classList.toggle("off", !on);
			hide();
		});
	}
})();
