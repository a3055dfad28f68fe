/* The objects of one kind that are known of, and what of them is news. */
#include "store/kubernetes/reflector_known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

static void deliver(struct reflector *r, const char *key, const json_t *object)
{
        r->store->listing = r->rechecking;
        r->store->options.changed(r->store->options.userdata, r->kind, key, object);
        r->store->listing = false;
}

static void deliver_again(struct reflector *r, const char *key, const json_t *object, bool known)
{
        r->store->rechecking = known;
        deliver(r, key, object);
        r->store->rechecking = false;
}

/* Objects of a list that repeats everything: is this one no news? Versions of one collection can be compared.
 */
static bool should_be_known(const struct reflector *r, const struct metadata *metadata)
{
        uint64_t version = 0;

        return r->rechecking && text_parse_uint64(metadata->version, &version) == 0 &&
               version <= r->recheck_version;
}

bool reflector_known_key(const struct reflector *r, const struct metadata *metadata, char key[600])
{
        bool namespaced = store_kind_info(r->kind)->namespaced;

        if (metadata->name[0] == '\0' || strlen(metadata->name) > 253 || strlen(metadata->namespace_) > 253 ||
            (namespaced && metadata->namespace_[0] == '\0'))
                return false;
        return text_format(key, 600, "%s%s%s", namespaced ? metadata->namespace_ : "", namespaced ? "/" : "",
                           metadata->name);
}

void reflector_known_forget(struct reflector *r, struct reflector_object *known)
{
        name_map_remove(&r->known, &known->entry);
        deliver_again(r, known->entry.key, NULL, r->rechecking);
        free(known);
}

/* An object as it is now. Another uid under the same name is another object: the old one went first. */
int reflector_known_take(struct reflector *r, const json_t *object, struct err *err)
{
        struct metadata metadata = metadata_of(object);
        uint64_t uid = hash_text(metadata.uid, 1), version = hash_text(metadata.version, 1);
        struct reflector_object *known;
        char key[600];

        if (!reflector_known_key(r, &metadata, key))
                return err_set(err, -EBADMSG, "an object without a (usable) name");
        known = (struct reflector_object *) name_map_find(&r->known, key);
        if (known != NULL && known->uid_hash != uid) {
                reflector_known_forget(r, known);
                known = NULL;
        }
        if (known != NULL && known->version_hash == version && metadata.version[0] != '\0') {
                known->list = r->list;
                if (r->rechecking)
                        deliver_again(r, key, object, true);
                return 0;
        }
        if (known == NULL)
                known = (struct reflector_object *) name_map_make(&r->known, key, sizeof(*known));
        if (known == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        known->uid_hash = uid;
        known->version_hash = version;
        known->list = r->list;
        deliver_again(r, key, object, should_be_known(r, &metadata));
        return 0;
}

/* What a whole list does not have is gone; but nothing is while an item of it cannot be told: it may be that
 * one. */
void reflector_known_drop_unlisted(struct reflector *r)
{
        for (struct name_map_entry *e = name_map_first(&r->known), *next; e != NULL; e = next) {
                next = name_map_next(&r->known, e);
                if (r->unreadable == 0 && ((struct reflector_object *) e)->list != r->list)
                        reflector_known_forget(r, (struct reflector_object *) e);
        }
}
