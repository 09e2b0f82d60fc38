// Pan and zoom: which part of the drawing the stage shows.

const ZOOM = { least: 0.05, most: 3, readable: 0.85 };

class Camera {
  constructor(stage, scene) {
    Object.assign(this, { stage, scene, x: 0, y: 0, k: 1 });
    this.width = stage.clientWidth;
    new ResizeObserver(() => this.resized()).observe(stage);
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.grab(event));
  }

  move(x, y, k = this.k) {
    Object.assign(this, { x, y, k });
    this.scene.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  }

  pan(dx, dy) {
    this.move(this.x + dx, this.y + dy);
  }

  // What was in the middle of the stage stays there.
  resized() {
    this.pan((this.stage.clientWidth - this.width) / 2, 0);
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

  // All of the drawing; where that would be too small to read, its upper end instead.
  fit({ width, height }, whole, start) {
    const [w, h] = [this.stage.clientWidth, this.stage.clientHeight];
    const all = Math.min((w - 40) / width, (h - 40) / height, 1.25);
    const k = whole ? all : Math.max(all, Math.min(ZOOM.readable, 1));
    const x = width * k <= w ? (w - width * k) / 2 : w / 2 - start * k;
    this.move(x, height * k <= h ? (h - height * k) / 2 : 20, k);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const box = this.stage.getBoundingClientRect();
    const speed = event.ctrlKey ? 0.01 : 0.0015;
    this.zoom(Math.exp(-event.deltaY * lines * speed), event.clientX - box.left, event.clientY - box.top);
  }

  grab(event) {
    if (event.button !== 0) return;
    let [x, y, moved] = [event.clientX, event.clientY, false];
    const drag = (now) => {
      if (!moved && Math.hypot(now.clientX - x, now.clientY - y) < 4) return;
      if (!moved) this.stage.setPointerCapture(event.pointerId);
      moved = true;
      this.pan(now.clientX - x, now.clientY - y);
      [x, y] = [now.clientX, now.clientY];
    };
    const drop = () => {
      this.stage.removeEventListener("pointermove", drag);
      this.dragged = moved;
    };
    this.stage.addEventListener("pointermove", drag);
    this.stage.addEventListener("pointerup", drop, { once: true });
    this.stage.addEventListener("pointercancel", drop, { once: true });
  }
}
