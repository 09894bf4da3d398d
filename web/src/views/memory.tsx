import { Empty } from '../ui/parts.tsx';

export function Memory() {
  return <Empty title="Memory" />;
}
