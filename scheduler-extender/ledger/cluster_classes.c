/* PriorityClasses into two tables of numbers: of all, and of those that pods get that name none. */
#include "scheduler-extender/ledger/cluster_classes.h"

#include <errno.h>

#include "base/json/json_field.h"

/* Values are of 32 bits with a sign; in the tables 0 stands for a name that is not there. */
#define SHIFT (INT64_C(1) << 32)

int cluster_classes_take(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object);
        int64_t value = 0;
        bool is_default = false;

        name_numbers_drop(&c->default_classes, key);
        if (object == NULL) {
                name_numbers_drop(&c->classes, key);
                return 0;
        }
        if (json_field_int64(&root, "value", INT32_MIN, INT32_MAX, &value, err) < 0 ||
            json_field_bool(&root, "globalDefault", &is_default, err) < 0)
                return -EBADMSG;
        if (name_numbers_set(&c->classes, key, (uint64_t) (value + SHIFT)) < 0 ||
            (is_default && name_numbers_set(&c->default_classes, key, (uint64_t) (value + SHIFT)) < 0))
                return -ENOMEM;
        return 0;
}

/* Of several default ones Kubernetes takes that of the smallest value. */
static int64_t default_value(const struct cluster *c)
{
        const struct name_map *map = &c->default_classes.map;
        int64_t least = 0;

        for (const struct name_map_entry *e = name_map_first(map); e != NULL; e = name_map_next(map, e)) {
                int64_t value = (int64_t) name_numbers_get(&c->default_classes, e->key) - SHIFT;

                least = e == name_map_first(map) || value < least ? value : least;
        }
        return least;
}

int cluster_class_value(const struct cluster *cluster, const char *name, int64_t *ret)
{
        uint64_t number = name_numbers_get(&cluster->classes, name);

        if (name[0] != '\0' && number == 0)
                return (cluster->synced & (1u << STORE_PRIORITY_CLASS)) != 0 ? -ENOENT : -EAGAIN;
        *ret = name[0] == '\0' ? default_value(cluster) : (int64_t) number - SHIFT;
        return 0;
}

void cluster_classes_free(struct cluster *cluster)
{
        name_numbers_free(&cluster->classes);
        name_numbers_free(&cluster->default_classes);
}
