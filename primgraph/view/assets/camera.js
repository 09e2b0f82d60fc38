// Pan and zoom: which part of the drawing the stage shows.

const ZOOM = { least: 0.05, most: 3, readable: 0.85, fitted: 1.25, border: 16 };

class Camera {
  constructor(stage, scene) {
    Object.assign(this, { stage, scene, x: 0, y: 0, k: 1, fitted: null, pointers: new Map() });
    this.width = stage.clientWidth;
    new ResizeObserver(() => this.resized()).observe(stage);
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.grab(event));
  }

  move(x, y, k = this.k, fitted = null) {
    Object.assign(this, { x, y, k, fitted });
    this.scene.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  }

  pan(dx, dy) {
    this.move(this.x + dx, this.y + dy);
  }

  // What is fitted is fitted again; else what was in the middle of the stage stays there.
  resized() {
    if (this.fitted) this.fit(this.fitted);
    else this.pan((this.stage.clientWidth - this.width) / 2, 0);
    this.width = this.stage.clientWidth;
  }

  zoom(factor, px = this.stage.clientWidth / 2, py = this.stage.clientHeight / 2) {
    const k = Math.min(ZOOM.most, Math.max(ZOOM.least, this.k * factor));
    this.move(px - ((px - this.x) * k) / this.k, py - ((py - this.y) * k) / this.k, k);
  }

  // The middle of the rectangle to the middle of the stage.
  centre({ x, y, width, height }) {
    const k = Math.max(this.k, ZOOM.readable);
    this.move(this.stage.clientWidth / 2 - (x + width / 2) * k, this.stage.clientHeight / 2 - (y + height / 2) * k, k);
  }

  // All of the drawing.
  fit(size) {
    const [w, h] = [this.stage.clientWidth, this.stage.clientHeight];
    const room = [(w - ZOOM.border) / size.width, (h - ZOOM.border) / size.height];
    const k = Math.max(Math.min(...room, ZOOM.fitted), ZOOM.least / 5);
    this.move((w - size.width * k) / 2, (h - size.height * k) / 2, k, size);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const box = this.stage.getBoundingClientRect();
    const speed = event.ctrlKey ? 0.01 : 0.0015;
    this.zoom(Math.exp(-event.deltaY * lines * speed), event.clientX - box.left, event.clientY - box.top);
  }

  // One pointer drags; two of them zoom, and what lies between them stays there.
  grab(event) {
    if (event.button !== 0) return;
    const { pointers } = this;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size > 1) this.dragged = true;
    if (pointers.size === 1) this.dragged = false;
    if (this.tracking) return;
    const drag = (now) => this.dragTo(now);
    const drop = (now) => {
      pointers.delete(now.pointerId);
      if (pointers.size) return;
      for (const [name, listener] of this.tracking) this.stage.removeEventListener(name, listener);
      this.tracking = null;
    };
    this.tracking = [["pointermove", drag], ["pointerup", drop], ["pointercancel", drop]];
    for (const [name, listener] of this.tracking) this.stage.addEventListener(name, listener);
  }

  dragTo(now) {
    const { pointers } = this;
    if (!pointers.has(now.pointerId)) return;
    const [x, y] = pointers.get(now.pointerId);
    const moved = [now.clientX, now.clientY];
    if (pointers.size === 1) {
      if (!this.dragged && Math.hypot(moved[0] - x, moved[1] - y) < 4) return;
      this.dragged = true;
      this.stage.setPointerCapture(now.pointerId);
      this.pan(moved[0] - x, moved[1] - y);
    } else {
      const other = [...pointers].find(([id]) => id !== now.pointerId)[1];
      const apart = ([px, py]) => Math.max(Math.hypot(px - other[0], py - other[1]), 1);
      const box = this.stage.getBoundingClientRect();
      this.pan((moved[0] - x) / 2, (moved[1] - y) / 2);
      this.zoom(apart(moved) / apart([x, y]), (moved[0] + other[0]) / 2 - box.left, (moved[1] + other[1]) / 2 - box.top);
    }
    pointers.set(now.pointerId, moved);
  }
}
