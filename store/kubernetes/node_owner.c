/* The claims of a JSON Web Token are its middle part. Nobody proves them here: they are ours. */
#include "store/kubernetes/node_owner.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/json/json_read.h"
#include "base/text.h"

/* Base64 of the kind for addresses has '-' and '_', and no padding. */
static json_t *claims_of(const char *token)
{
        const char *begin = strchr(token, '.'), *end = begin == NULL ? NULL : strchr(begin + 1, '.');
        CLEANUP(free_p) char *digits = NULL, *text = NULL;
        size_t count = end == NULL ? 0 : (size_t) (end - begin) - 1, bytes = 0;

        if (count == 0 || (digits = calloc(1, count + 4)) == NULL)
                return NULL;
        memcpy(digits, begin + 1, count);
        for (size_t i = 0; i < count; i++)
                if (digits[i] == '-')
                        digits[i] = '+';
                else if (digits[i] == '_')
                        digits[i] = '/';
        memset(digits + count, '=', (4 - count % 4) % 4);
        text = base64_decode(digits, &bytes);
        return text == NULL ? NULL : json_read(text, bytes, 0, NULL);
}

void node_owner_look(struct node_owner *owner, const char *token, const char *node)
{
        json_t *claims = token == NULL ? NULL : claims_of(token);
        struct json_field root = json_field_root(claims), own = json_field_get(&root, "kubernetes.io"),
                          at = json_field_get(&own, "node");
        const char *name = "", *uid = "";
        char of_node[sizeof(owner->uid)] = "";

        (void) json_field_string(&at, "name", &name, NULL);
        (void) json_field_string(&at, "uid", &uid, NULL);
        if (strcmp(name, node) == 0 && !text_copy(of_node, sizeof(of_node), uid))
                of_node[0] = '\0';
        json_decref(claims);
        if (strcmp(of_node, owner->uid) == 0)
                return;
        (void) text_copy(owner->uid, sizeof(owner->uid), of_node);
        owner->given_up = owner->sent = false;
        owner->due = true;
}

void node_owner_give_up(struct node_owner *owner)
{
        owner->given_up = owner->due = true;
        owner->sent = false;
}

json_t *node_owner_references(const struct node_owner *owner, const char *node)
{
        return owner->given_up || owner->uid[0] == '\0'
                       ? json_array()
                       : json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind", "Node", "name", node,
                                   "uid", owner->uid);
}
