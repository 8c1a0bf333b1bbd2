// The types of what vendor/preact.js exports, as far as the page uses it, for `tsc --checkJs`; no browser loads this.

export interface Signal<T> {
  value: T
  peek(): T
}
export interface ReadonlySignal<T> {
  readonly value: T
  peek(): T
}
export interface Ref<T> {
  current: T
}
type Cleanup = void | (() => void)

export function render(node: unknown, parent: Element): void
export function html(strings: TemplateStringsArray, ...values: unknown[]): any
export function useState<T>(initial: T): [T, (value: T) => void]
export function useRef<T>(initial: T): Ref<T>
export function useEffect(act: () => Cleanup, inputs?: unknown[]): void
export function useLayoutEffect(act: () => Cleanup, inputs?: unknown[]): void
export function signal<T>(initial: T): Signal<T>
export function computed<T>(make: () => T): ReadonlySignal<T>
export function batch<T>(act: () => T): T
export function useSignal<T>(initial: T): Signal<T>
