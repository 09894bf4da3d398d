#!/bin/sh
# Times symbolisation against binutils' addr2line on a program with much debug information: one
# C++ unit is compiled once, its assembly is renamed and assembled many times, and all are linked.
#   bench/symbol_bench.sh PATH/TO/symbol_bench [UNITS] [FOLDER]
# 75 units make about 100 MB of debug information. With FOLDER the program is kept there and reused.
set -eu
bench=$1
units=${2:-75}
folder=${3:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d "${TMPDIR:-/tmp}/symbol_bench.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

unit() {
    cat <<'SOURCE'
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
struct Key0000 {
    int a;
    std::string b;
    bool operator<(const Key0000 &o) const { return a < o.a || (a == o.a && b < o.b); }
};
template <class T> struct Tree0000 {
    std::map<T, std::vector<T>> children;
    std::unordered_map<std::string, std::map<int, T>> index;
    void add(const T &t) { children[t].push_back(t); index[t.b][t.a] = t; }
    size_t size() const { size_t n = 0; for (auto &c : children) n += c.second.size(); return n; }
};
int run0000(int n)
{
    Tree0000<Key0000> tree;
    for (int i = 0; i < n; i++) tree.add(Key0000{i, std::to_string(i)});
    std::regex pattern("a(b|c)*d");
    std::ostringstream out;
    for (auto &p : tree.children)
        if (std::regex_match(p.first.b, pattern)) out << p.first.a;
    std::function<int(int)> f = [&](int k) { return k + (int)tree.size(); };
    std::vector<Key0000> sorted;
    for (auto &p : tree.children) sorted.push_back(p.first);
    std::sort(sorted.begin(), sorted.end());
    return (int)out.str().size() + f(n) + (int)sorted.size();
}
SOURCE
}

program="$folder/program"
if [ ! -x "$program" ]; then
    unit >"$folder/unit.cpp"
    g++ -O2 -g -S -o "$folder/unit.s" "$folder/unit.cpp"
    {
        i=1
        while [ "$i" -le "$units" ]; do printf 'int run%04d(int);\n' "$i"; i=$((i + 1)); done
        printf 'int main(int argc, char **argv)\n{\n    (void)argv;\n    int n = 0;\n'
        i=1
        while [ "$i" -le "$units" ]; do printf '    n += run%04d(argc);\n' "$i"; i=$((i + 1)); done
        printf '    return n == 0;\n}\n'
    } >"$folder/main.cpp"
    i=1
    while [ "$i" -le "$units" ]; do
        id=$(printf '%04d' "$i")
        sed "s/\(Key\|Tree\|run\)0000/\1$id/g" "$folder/unit.s" | as -o "$folder/unit$id.o" -
        i=$((i + 1))
    done
    g++ -O2 -g -o "$program" "$folder/main.cpp" "$folder"/unit????.o
    rm -f "$folder"/unit????.o
fi
"$bench" "$program"
