// Arrays of numbers that grow: documents of a live recording add to them.

export class Growing<T extends Uint32Array | Float64Array | Uint8Array | Int32Array> {
  data: T;
  length = 0;

  constructor(private readonly make: (size: number) => T, size = 16) {
    this.data = make(size);
  }

  reserve(size: number): void {
    if (size <= this.data.length) return;
    const larger = this.make(Math.max(size, this.data.length * 2));
    larger.set(this.data.subarray(0, this.length) as never);
    this.data = larger;
  }

  push(value: number): number {
    if (this.length === this.data.length) this.reserve(this.length + 1);
    this.data[this.length] = value;
    return this.length++;
  }

  /** Puts numbers at a place that may lie beyond the end. */
  putAt(at: number, values: ArrayLike<number>): void {
    this.reserve(at + values.length);
    this.data.set(values as never, at);
    this.length = Math.max(this.length, at + values.length);
  }

  append(values: T): void {
    if (this.length) {
      this.putAt(this.length, values);
      return;
    }
    this.data = values;
    this.length = values.length;
  }

  clear(): void {
    this.length = 0;
  }
}

export const words = (size = 16) => new Growing<Uint32Array>((n) => new Uint32Array(n), size);
export const floats = (size = 16) => new Growing<Float64Array>((n) => new Float64Array(n), size);
export const bytes = (size = 16) => new Growing<Uint8Array>((n) => new Uint8Array(n), size);
