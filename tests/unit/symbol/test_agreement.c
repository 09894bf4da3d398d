/*
 * Every address of .text of optimised programs, against binutils' addr2line: the whole chain of
 * inlined functions and all lines must be the same. Left out are addresses for which addr2line has
 * no line and padding between functions, which it gives to the function before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "workshop.h"

static struct workshop shop;

static const char in_c[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "struct node { int key; struct node *left, *right; };\n"
    "static inline int compare(int a, int b) { return a < b ? -1 : a > b; }\n"
    "static inline struct node *fresh(int key)\n{\n    struct node *n = calloc(1, sizeof *n);\n"
    "    n->key = key;\n    return n;\n}\n"
    "static struct node *insert(struct node *n, int key)\n{\n    if (!n)\n        return "
    "fresh(key);\n"
    "    int c = compare(key, n->key);\n    if (c < 0)\n        n->left = insert(n->left, key);\n"
    "    else if (c > 0)\n        n->right = insert(n->right, key);\n    return n;\n}\n"
    "static inline int mix(int x) { return (x ^ (x >> 7)) * 31; }\n"
    "static inline int twice(int x) { return mix(mix(x)); }\n"
    "__attribute__((noinline)) int sum(const struct node *n)\n{\n"
    "    return n ? twice(n->key) + sum(n->left) + sum(n->right) : 0;\n}\n"
    "__attribute__((cold, noinline)) void complain(const char *s)\n{\n    fputs(s, stderr);\n"
    "    exit(1);\n}\n"
    "int main(int argc, char **argv)\n{\n    struct node *root = NULL;\n"
    "    for (int i = 0; i < argc * 100; i++)\n        root = insert(root, twice(i) % 1000);\n"
    "    if (argc > 50)\n        complain(argv[0]);\n    printf(\"%d\\n\", sum(root));\n}\n";

static const char in_cpp[] =
    "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n#include "
    "<cstdio>\n"
    "namespace shapes {\n"
    "struct shape { virtual ~shape() {} virtual double area() const = 0; };\n"
    "struct square : shape { double a; square(double x) : a(x) {} double area() const override "
    "{ return a * a; } };\n"
    "template <class T> T clamp(T v, T lo, T hi) { return v < lo ? lo : v > hi ? hi : v; }\n}\n"
    "using namespace shapes;\n"
    "__attribute__((noinline)) double total(const std::vector<shape *> &all)\n{\n"
    "    double t = 0;\n    for (auto *s : all)\n        t += clamp(s->area(), 0.0, 50.0);\n"
    "    return t;\n}\n"
    "int main(int argc, char **argv)\n{\n    std::vector<shape *> all;\n"
    "    for (int i = 0; i < argc * 10; i++)\n        all.push_back(new square(i));\n"
    "    std::sort(all.begin(), all.end(), [](shape *a, shape *b) "
    "{ return a->area() < b->area(); });\n"
    "    std::map<std::string, int> names;\n    names[argv[0]] = (int)total(all);\n"
    "    std::printf(\"%d\\n\", names.begin()->second);\n}\n";

static int open_shop(void **state)
{
    (void)state;
    workshop_open(&shop);
    workshop_write(&shop, "c.c", in_c);
    workshop_write(&shop, "cpp.cpp", in_cpp);
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    workshop_close(&shop);
    return 0;
}

/* Addresses inside functions that have a size. */
static uint64_t *inside_functions(const char *file, size_t *count)
{
    char *out = workshop_output(&shop,
                                "nm -S '%s' | awk '$3 ~ /^[tTwW]$/ { print $1, $2 }' | "
                                "sort -u",
                                file);
    uint64_t *address = NULL, last = 0;
    size_t cap = 0;
    *count = 0;
    for (char *p = out; *p;) {
        uint64_t start = strtoull(p, &p, 16), size = strtoull(p, &p, 16);
        while (*p == '\n')
            p++;
        for (uint64_t a = start; a < start + size; a++) {
            if (a < last)
                continue;
            if (*count == cap)
                address = memory_grow(address, cap = cap ? cap * 2 : 1024, sizeof *address);
            address[(*count)++] = last = a;
            last = a + 1;
        }
    }
    free(out);
    return address;
}

static char *next_line(char **p)
{
    char *line = *p, *newline = strchr(line, '\n');
    if (!newline)
        return NULL;
    *newline = '\0';
    *p = newline + 1;
    return line;
}

/* "file.c:12 (discriminator 3)" to "file.c" and 12. */
static const char *split_place(char *place, unsigned *line)
{
    char *colon = strrchr(place, ':');
    *line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    if (colon)
        *colon = '\0';
    char *slash = strrchr(place, '/');
    return slash ? slash + 1 : place;
}

/* Where debug information has no linkage name, addr2line prints the bare one. */
static bool same_function(const char *theirs, const char *ours)
{
    size_t a = strlen(theirs), b = strlen(ours);
    if (strcmp(theirs, ours) == 0)
        return true;
    if (b > a + 2 && strcmp(ours + b - a, theirs) == 0 && ours[b - a - 1] == ':')
        return true;
    const char *bare = strchr(theirs, '<');
    return !strchr(theirs, '(') && strncmp(theirs, ours, bare ? (size_t)(bare - theirs) : a) == 0;
}

struct score {
    size_t asked, agreed;
};

static bool same_chain(char **p, const struct found *f, bool *known)
{
    bool same = true;
    size_t i = 0;
    for (; **p && strncmp(*p, "0x", 2) != 0; i++) {
        const char *function = next_line(p);
        unsigned line;
        const char *file = split_place(next_line(p), &line);
        *known = *known || (i == 0 && line > 0);
        if (i >= f->n) {
            same = false;
            continue;
        }
        const struct symbol_location *l = &f->location[i];
        const char *slash = l->file ? strrchr(l->file, '/') : NULL;
        same = same && same_function(function, l->function) && l->line == line &&
               (line == 0 || (slash && strcmp(slash + 1, file) == 0));
    }
    return same && i == f->n;
}

static struct score compare(const char *file)
{
    size_t count;
    uint64_t *address = inside_functions(file, &count);
    assert_true(count > 100);
    struct text list = TEXT_INIT;
    for (size_t i = 0; i < count; i++)
        text_format(&list, "0x%llx\n", (unsigned long long)address[i]);
    workshop_write(&shop, "list", list.data);
    text_release(&list);
    char *theirs = workshop_output(&shop, "addr2line -a -i -f -C -e %s < list", file), *p = theirs;
    struct symbol_request r = {.kind = SYMBOL_ELF, .address = address, .count = count};
    r.path = workshop_path(&shop, file);
    struct catch c;
    catch_isolated(&c, &r, NULL);
    assert_int_equal(c.result.status, SYMBOL_FULL);
    struct score score = {0};
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        assert_int_equal(strtoull(next_line(&p), NULL, 16), address[i]);
        bool same = same_chain(&p, &c.found[i], &known);
        score.asked += known;
        score.agreed += known && same;
    }
    catch_release(&c);
    free(theirs);
    free(address);
    return score;
}

static void agree(const char *compiler, const char *source, const char *flags)
{
    workshop_run(&shop, "%s -g %s -o program %s", compiler, flags, source);
    struct score s = compare("program");
    print_message("%s %s: %zu of %zu addresses agree\n", source, flags, s.agreed, s.asked);
    assert_true(s.asked > 200);
    assert_true(s.agreed * 100 >= s.asked * 99);
}

static void test_c(void **state)
{
    (void)state;
    agree("gcc", "c.c", "-O0");
    agree("gcc", "c.c", "-O2");
    agree("gcc", "c.c", "-O3 -no-pie");
    agree("gcc", "c.c", "-O2 -gdwarf-4");
    agree("gcc", "c.c", "-Os -ffunction-sections");
}

static void test_cpp(void **state)
{
    (void)state;
    if (!workshop_has("g++"))
        skip();
    agree("g++", "cpp.cpp", "-O0");
    agree("g++", "cpp.cpp", "-O2");
    agree("g++", "cpp.cpp", "-O2 -gdwarf-4 -no-pie");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_c), cmocka_unit_test(test_cpp)};
    return cmocka_run_group_tests(tests, open_shop, close_shop);
}
