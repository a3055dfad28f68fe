/* Resource map: patterns, names that Kubernetes takes, and the check that one name means one thing. */
#include "agent/inventory/resource_map.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/object_name.h"
#include "base/text.h"

#define DOMAIN_MAX 244 /* "requests." is put before it, and 253 is the end */
#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool matches(const char *pattern, const char *text)
{
        const char *star = NULL, *resume = NULL;

        if (*pattern == '\0')
                return true;
        while (*text != '\0') {
                if (*pattern == '*') {
                        star = pattern++;
                        resume = text;
                } else if (*pattern == '?' || *pattern == *text) {
                        pattern++;
                        text++;
                } else if (star != NULL) {
                        pattern = star + 1;
                        text = ++resume;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}

static bool ends_in(const char *domain, size_t n, const char *suffix)
{
        size_t m = strlen(suffix);

        return n >= m && memcmp(domain + n - m, suffix, m) == 0 && (n == m || domain[n - m - 1] == '.');
}

int resource_map_check_name(const char *name, struct err *err)
{
        const char *slash = strchr(name, '/'), *part;
        size_t n;

        if (slash == NULL)
                return err_set(err, -EINVAL, "resource '%s' has no domain: write DOMAIN/NAME", name);
        n = (size_t) (slash - name);
        part = slash + 1;
        if (!object_name_dns_valid(name, n) || n > DOMAIN_MAX)
                return err_set(err, -EINVAL, "the domain of resource '%s' is no lower-case DNS name", name);
        if (ends_in(name, n, "kubernetes.io"))
                return err_set(err, -EINVAL, "resource '%s': kubernetes.io names belong to Kubernetes", name);
        if (text_starts_with(name, "requests."))
                return err_set(err, -EINVAL, "resource '%s' must not begin with 'requests.'", name);
        if (object_name_word_valid(part))
                return 0;
        part += strspn(part, LETTERS "-_.");
        if (*part == '\0')
                return err_set(
                        err, -EINVAL,
                        "the name of resource '%s' must have 1 to 63 characters and end in letters or digits",
                        name);
        return err_set(err, -EINVAL, "resource '%s' holds '%c'; letters, digits, '-', '_' and '.' do", name,
                       *part);
}

/* The model's or the group's name, made fit to stand behind the slash. */
static void put_name(char *resource, size_t bytes, const char *domain_of, const char *name)
{
        const char *slash = strchr(domain_of, '/');
        int domain = slash == NULL ? (int) strlen("remuda.dev") : (int) (slash - domain_of);
        char clean[64];
        size_t n = 0;

        for (const char *c = name; *c != '\0' && n + 1 < sizeof(clean); c++) {
                bool fit = isalnum((unsigned char) *c) || (n > 0 && strchr("-_.", *c) != NULL);

                if (fit || (n > 0 && clean[n - 1] != '-'))
                        clean[n++] = (char) (fit ? tolower((unsigned char) *c) : '-');
        }
        while (n > 0 && !isalnum((unsigned char) clean[n - 1]))
                n--;
        clean[n] = '\0';
        (void) text_format(resource, bytes, "%.*s/%s", domain, slash == NULL ? "remuda.dev" : domain_of,
                           n == 0 ? "unknown" : clean);
}

static const struct resource_map_rule *rule_for(const struct resource_map *map,
                                                const struct device_group *group)
{
        for (size_t i = 0; i < map->rule_count; i++) {
                const struct resource_map_rule *rule = &map->rules[i];

                if (matches(rule->group, group->name) && matches(rule->vendor, group->vendor) &&
                    matches(rule->model, group->model))
                        return rule;
        }
        return NULL;
}

static void map_group(const struct resource_map *map, const struct device_group *group,
                      char resource[DEVICE_RESOURCE_BYTES], unsigned *shares)
{
        const struct resource_map_rule *rule = rule_for(map, group);

        (void) text_copy(resource, DEVICE_RESOURCE_BYTES, group->resource);
        *shares = group->shares;
        if (map->by == RESOURCE_BY_MODEL)
                put_name(resource, DEVICE_RESOURCE_BYTES, group->resource, group->model);
        else if (map->by == RESOURCE_BY_GROUP)
                put_name(resource, DEVICE_RESOURCE_BYTES, group->resource, group->name);
        if (rule != NULL && rule->resource[0] != '\0')
                (void) text_copy(resource, DEVICE_RESOURCE_BYTES, rule->resource);
        if (rule != NULL && rule->replicas > 0)
                *shares = rule->replicas;
}

static int check_pair(const struct device_group *a, const struct device_group *b, const char *resource,
                      unsigned sa, unsigned sb, struct err *err)
{
        if (strcmp(a->vendor, b->vendor) != 0)
                return err_set(err, -EINVAL,
                               "resource '%s' would be of two vendors, %s (group %s) and %s (group %s): give "
                               "each its "
                               "own name",
                               resource, a->vendor, a->name, b->vendor, b->name);
        if ((sa > 1 ? sa : 1) != (sb > 1 ? sb : 1))
                return err_set(
                        err, -EINVAL,
                        "resource '%s' would be shared %u times in group %s and %u times in group %s: give "
                        "each its own name",
                        resource, sa > 1 ? sa : 1, a->name, sb > 1 ? sb : 1, b->name);
        return 0;
}

int resource_map_apply(const struct resource_map *map, struct inventory *inventory, struct err *err)
{
        char resources[GROUPS_MAX][DEVICE_RESOURCE_BYTES];
        unsigned shares[GROUPS_MAX];
        int r;

        for (size_t i = 0; i < inventory->group_count; i++) {
                map_group(map, &inventory->groups[i], resources[i], &shares[i]);
                for (size_t j = 0; j < i; j++) {
                        if (strcmp(resources[i], resources[j]) != 0)
                                continue;
                        r = check_pair(&inventory->groups[j], &inventory->groups[i], resources[i], shares[j],
                                       shares[i], err);
                        if (r < 0)
                                return r;
                }
        }
        for (size_t i = 0; i < inventory->group_count; i++) {
                (void) text_copy(inventory->groups[i].resource, DEVICE_RESOURCE_BYTES, resources[i]);
                inventory->groups[i].shares = shares[i];
        }
        return 0;
}
