/* Tree: paths are followed here, one link at a time; what is at their end the backend says. */
#include "agent/tree/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tree/tree_internal.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

const char *tree_root(const struct tree *tree)
{
        return tree->root;
}

bool tree_is_live(const struct tree *tree)
{
        return tree_machine_of(tree) == NULL && strcmp(tree->root, "/") == 0;
}

void tree_close(struct tree *tree)
{
        if (tree == NULL)
                return;
        tree->backend->free(tree->state);
        tree_record_free(tree->recording);
        free(tree);
}

/* The count is bookkeeping, not part of what a tree says: that is why it may change behind a const tree. */
void tree_budget(const struct tree *tree, uint64_t operations)
{
        struct tree *mutable = (struct tree *) tree;

        tree->backend->forget(tree->state);
        mutable->operations_left = operations;
        mutable->exhausted = false;
        mutable->starved = 0;
}

int tree_starved(const struct tree *tree)
{
        return tree->starved;
}

/* What the backend answered: could it look at all? */
static ssize_t noted(const struct tree *tree, ssize_t r)
{
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN)
                ((struct tree *) tree)->starved = (int) r;
        return r;
}

static enum tree_kind kind_at(const struct tree *tree, const char *clean)
{
        ssize_t kind = noted(tree, tree->backend->kind(tree->state, clean));

        return kind < 0 ? TREE_ABSENT : (enum tree_kind) kind;
}

bool tree_exhausted(const struct tree *tree)
{
        return tree->exhausted;
}

static bool spend(const struct tree *tree)
{
        struct tree *mutable = (struct tree *) tree;

        if (mutable->operations_left == 0) {
                mutable->exhausted = true;
                return false;
        }
        if (mutable->operations_left != UINT64_MAX)
                mutable->operations_left--;
        return true;
}

/* What is left to go stands at the end of its room, so that a link's target goes in front of it. */
struct walk {
        char done[TREE_PATH_BYTES]; /* clean, holds no link */
        size_t done_length;
        char rest[2 * TREE_PATH_BYTES];
        size_t at; /* where the rest begins */
        unsigned links;
};

static void walk_up(struct walk *walk)
{
        while (walk->done_length > 0 && walk->done[--walk->done_length] != '/')
                ;
        walk->done[walk->done_length] = '\0';
}

static int walk_down(struct walk *walk, const char *name, size_t length)
{
        if (walk->done_length + length + 2 > sizeof(walk->done))
                return -ENAMETOOLONG;
        if (walk->done_length > 0)
                walk->done[walk->done_length++] = '/';
        memcpy(walk->done + walk->done_length, name, length);
        walk->done_length += length;
        walk->done[walk->done_length] = '\0';
        return 0;
}

/* The prefix turned out to be a link: its target goes before the rest. */
static int walk_follow(struct walk *walk, const char *target, size_t length)
{
        if (++walk->links > TREE_LINKS_MAX)
                return -ELOOP;
        if (length + 1 > walk->at)
                return -ENAMETOOLONG;
        walk->rest[--walk->at] = '/';
        walk->at -= length;
        memcpy(walk->rest + walk->at, target, length);
        if (target[0] == '/') {
                walk->done_length = 0;
                walk->done[0] = '\0';
        } else
                walk_up(walk);
        return 0;
}

/* Takes one component off the rest. Return: its length, 0 when there is none left. */
static size_t walk_next(struct walk *walk, const char **ret)
{
        *ret = walk->rest + walk->at + strspn(walk->rest + walk->at, "/");
        walk->at = (size_t) (strchrnul(*ret, '/') - walk->rest);
        return (size_t) (walk->rest + walk->at - *ret);
}

static int walk_step(const struct tree *tree, struct walk *walk, const char *name, size_t length)
{
        char target[TREE_PATH_BYTES];
        ssize_t size;
        int r;

        if (length == 1 && name[0] == '.')
                return 0;
        if (length == 2 && name[0] == '.' && name[1] == '.') {
                walk_up(walk);
                return 0;
        }
        r = walk_down(walk, name, length);
        if (r < 0)
                return r;
        size = noted(tree, tree->backend->link(tree->state, walk->done, target, sizeof(target)));
        if (size == -EINVAL) /* not a link: stays in the prefix */
                return 0;
        if (size < 0)
                return (int) size;
        tree_record_note(tree->recording, walk->done, TREE_LINK, target, (size_t) size);
        return walk_follow(walk, target, (size_t) size);
}

/* Follows every link of `path`. Return: length of `ret`, -ENOENT, -ELOOP, -ENAMETOOLONG. */
static ssize_t resolve(const struct tree *tree, const char *path, char *ret, size_t ret_bytes)
{
        size_t size = strlen(path) + 1, length;
        const char *name;
        struct walk walk; /* not cleared: its room is large */

        if (size > TREE_PATH_BYTES)
                return -ENAMETOOLONG;
        walk.done[0] = '\0';
        walk.done_length = 0;
        walk.links = 0;
        walk.at = sizeof(walk.rest) - size;
        memcpy(walk.rest + walk.at, path, size);
        while ((length = walk_next(&walk, &name)) > 0) {
                int r = spend(tree) ? walk_step(tree, &walk, name, length) : -EDQUOT;

                if (r < 0)
                        return r;
        }
        if (walk.done_length + 1 > ret_bytes)
                return -ENAMETOOLONG;
        memcpy(ret, walk.done, walk.done_length + 1);
        return (ssize_t) walk.done_length;
}

/* The path to hand to the backend: as it is where the backend resolves and nothing is being recorded. */
static int prepare(const struct tree *tree, const char *path, char *ret)
{
        ssize_t length;

        if (!spend(tree))
                return -EDQUOT;
        while (*path == '/')
                path++;
        if (tree->resolves && tree->recording == NULL) {
                if (strlen(path) >= TREE_PATH_BYTES)
                        return -ENAMETOOLONG;
                memcpy(ret, path, strlen(path) + 1);
                return 0;
        }
        length = resolve(tree, path, ret, TREE_PATH_BYTES);
        return length < 0 ? (int) length : 0;
}

enum tree_kind tree_kind(const struct tree *tree, const char *path)
{
        char clean[TREE_PATH_BYTES];
        enum tree_kind kind;

        if (prepare(tree, path, clean) < 0)
                return TREE_ABSENT;
        kind = kind_at(tree, clean);
        tree_record_note(tree->recording, clean, kind, NULL, 0);
        return kind;
}

bool tree_has(const struct tree *tree, const char *path)
{
        enum tree_kind kind = tree_kind(tree, path);

        return kind != TREE_ABSENT && kind != TREE_LINK;
}

ssize_t tree_read(const struct tree *tree, const char *path, void *buffer, size_t size_bytes)
{
        char clean[TREE_PATH_BYTES];
        int r = prepare(tree, path, clean);
        ssize_t size;

        if (r < 0)
                return r;
        size = noted(tree, tree->backend->read(tree->state, clean, buffer, size_bytes));
        if (size >= 0)
                tree_record_note(tree->recording, clean, TREE_FILE, buffer, (size_t) size);
        return size;
}

ssize_t tree_read_text(const struct tree *tree, const char *path, char *text, size_t text_bytes)
{
        ssize_t size;

        assert(text_bytes > 0);
        size = tree_read(tree, path, text, text_bytes);
        text[size < 0 || (size_t) size == text_bytes ? 0 : size] = '\0';
        if (size < 0)
                return size;
        if ((size_t) size == text_bytes)
                return -E2BIG;
        if (memchr(text, '\0', (size_t) size) != NULL) {
                text[0] = '\0';
                return -EBADMSG;
        }
        while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
                text[--size] = '\0';
        return size;
}

int tree_read_int64(const struct tree *tree, const char *path, int64_t *ret)
{
        char text[64];
        ssize_t size = tree_read_text(tree, path, text, sizeof(text));

        return size < 0 ? (int) size : text_parse_int64(text, ret);
}

int tree_read_hex64(const struct tree *tree, const char *path, uint64_t *ret)
{
        char text[64];
        ssize_t size = tree_read_text(tree, path, text, sizeof(text));

        return size < 0 ? (int) size : text_parse_hex64(text, ret);
}

ssize_t tree_realpath(const struct tree *tree, const char *path, char *ret, size_t ret_bytes)
{
        return resolve(tree, path, ret, ret_bytes);
}

/* The link itself, its parents resolved. As backend->link(). */
static ssize_t read_link(const struct tree *tree, const char *path, const char *name, char *target)
{
        char parent[TREE_PATH_BYTES], clean[TREE_PATH_BYTES + 256];
        ssize_t size;

        if (tree->resolves && tree->recording == NULL)
                return noted(tree, tree->backend->link_below(tree->state, path, target, TREE_PATH_BYTES));
        memcpy(parent, path, (size_t) (name - path));
        parent[name - path] = '\0';
        size = resolve(tree, parent, clean, TREE_PATH_BYTES);
        if (size < 0)
                return size;
        if (!text_format(clean + size, sizeof(clean) - (size_t) size, "%s%s", size > 0 ? "/" : "", name))
                return -ENAMETOOLONG;
        size = noted(tree, tree->backend->link(tree->state, clean, target, TREE_PATH_BYTES));
        if (size >= 0)
                tree_record_note(tree->recording, clean, TREE_LINK, target, (size_t) size);
        return size;
}

ssize_t tree_link_name(const struct tree *tree, const char *path, char *ret, size_t ret_bytes)
{
        const char *slash, *name, *last;
        char target[TREE_PATH_BYTES];
        ssize_t size;

        while (*path == '/')
                path++;
        slash = strrchr(path, '/');
        name = slash != NULL ? slash + 1 : path;
        if (!spend(tree))
                return -EDQUOT;
        if (strlen(path) >= TREE_PATH_BYTES)
                return -ENAMETOOLONG;
        size = read_link(tree, path, name, target);
        if (size < 0 && size != -EINVAL)
                return size;
        last = size >= 0 ? strrchr(target, '/') : NULL;
        last = size < 0 ? name : last != NULL ? last + 1 : target;
        return text_copy(ret, ret_bytes, last) ? (ssize_t) strlen(ret) : -E2BIG;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}
static void sort_names(struct tree_names *names)
{
        if (names->count > 1)
                qsort(names->names, names->count, sizeof(*names->names), by_name);
}

int tree_list(const struct tree *tree, const char *path, struct tree_names *ret)
{
        char clean[TREE_PATH_BYTES], child[TREE_PATH_BYTES + 260], target[TREE_PATH_BYTES];
        int r = prepare(tree, path, clean);

        *ret = (struct tree_names){ 0 };
        if (r == 0)
                r = (int) noted(tree, tree->backend->list(tree->state, clean, ret));
        if (r < 0) {
                tree_names_free(ret);
                return r;
        }
        sort_names(ret);
        tree_record_note(tree->recording, clean, TREE_DIRECTORY, NULL, 0);
        for (size_t i = 0; tree->recording != NULL && i < ret->count; i++) {
                ssize_t size;

                (void) text_format(child, sizeof(child), "%s/%s", clean, ret->names[i]);
                size = noted(tree, tree->backend->link(tree->state, child, target, sizeof(target)));
                if (size >= 0)
                        tree_record_note(tree->recording, child, TREE_LINK, target, (size_t) size);
                else
                        tree_record_note(tree->recording, child, kind_at(tree, child), NULL, 0);
        }
        return 0;
}

void tree_names_free(struct tree_names *names)
{
        for (size_t i = 0; i < names->count; i++)
                free(names->names[i]);
        free(names->names);
        *names = (struct tree_names){ 0 };
}

int tree_names_add(struct tree_names *names, const char *name, size_t length)
{
        char **added;

        if (names->count >= TREE_NAMES_MAX)
                return -E2BIG;
        added = array_add(&names->names, &names->count, &names->capacity, sizeof(*added));
        if (added == NULL)
                return -ENOMEM;
        *added = strndup(name, length);
        if (*added != NULL)
                return 0;
        names->count--;
        return -ENOMEM;
}
