// Requests to the server that the page came from, with the token of the page's own address.

export class Server {
  private readonly token = new URLSearchParams(location.search).get('token') ?? '';

  address(path: string): string {
    if (!this.token) return path;
    return `${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(this.token)}`;
  }

  /** The answer; what is not well is thrown as the sentence that the server gave. */
  async ask(path: string, more: RequestInit = {}): Promise<Response> {
    const answer = await fetch(this.address(path), { cache: 'no-store', ...more });
    if (!answer.ok) throw new Error(await sentence(answer));
    return answer;
  }

  async bytes(path: string): Promise<Uint8Array> {
    return new Uint8Array(await (await this.ask(path)).arrayBuffer());
  }

  async json<T>(path: string): Promise<T> {
    return (await (await this.ask(path)).json()) as T;
  }

  send(method: string, path: string, body?: unknown): Promise<Response> {
    return this.ask(path, { method, headers: { 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) });
  }
}

async function sentence(answer: Response): Promise<string> {
  try {
    return String((await answer.json()).error);
  } catch {
    return `status ${answer.status}`;
  }
}
