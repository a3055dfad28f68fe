/* Whose the things are that an agent writes: what its token says, and what becomes of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "store/kubernetes/node_owner.h"

/* The middle parts, by `printf '%s' '...' | basenc --base64url | tr -d =`. */
#define OF_N1                                                                                                                            \
        "eyJrdWJlcm5ldGVzLmlvIjp7Im5vZGUiOnsibmFtZSI6Im4xIiwidWlkIjoidS0xIn19fQ" /* {"kubernetes.io":{"node":{"name":"n1","uid":"u-1"}}} \
                                                                                  */
#define OF_N1_NEW "eyJrdWJlcm5ldGVzLmlvIjp7Im5vZGUiOnsibmFtZSI6Im4xIiwidWlkIjoidS0yIn19fQ" /* ... "u-2" */
#define OF_NONE   "eyJrdWJlcm5ldGVzLmlvIjp7InBvZCI6eyJuYW1lIjoiYSJ9fX0" /* before Kubernetes 1.30 */
#define DIGITS                                                                                               \
        "eyJhIjoiPz8_fn5-IiwiZSI6ImUiLCJrdWJlcm5ldGVzLmlvIjp7Im5vZGUiOnsibmFtZSI6Im4xIiwidWlkIjoidS0zIn19fQ"

static const struct {
        const char *sentence, *token, *uid;
} rows[] = {
        { "no token: a client certificate", NULL, "" },
        { "a token that is none of a service account's", "good-token", "" },
        { "one with a claim", "e30." OF_N1 ".c2ln", "u-1" },
        { "one with digits of the kind for addresses", "e30." DIGITS ".c2ln", "u-3" },
        { "one without", "e30." OF_NONE ".c2ln", "" },
        { "one of an empty part", "e30..c2ln", "" },
        { "one that is cut short", "e30." OF_N1, "" },
        { "one whose part is no base64", "e30.%%%%.c2ln", "" },
        { "one whose part is no JSON", "e30.aGVsbG8.c2ln", "" },
        { "one whose claims are of other kinds", "e30.eyJrdWJlcm5ldGVzLmlvIjpbeyJub2RlIjoxfV19.c2ln", "" },
};

static void a_token_says_which_node(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct node_owner owner = { .given_up = false };

                node_owner_look(&owner, rows[i].token, "n1");
                if (strcmp(owner.uid, rows[i].uid) != 0 || owner.due != (rows[i].uid[0] != '\0'))
                        fail_msg("%s: '%s', due %d", rows[i].sentence, owner.uid, owner.due);
                owner = (struct node_owner){ .given_up = false };
                node_owner_look(&owner, rows[i].token, "n2");
                if (owner.uid[0] != '\0')
                        fail_msg("%s: another node's counts", rows[i].sentence);
        }
}

static const char *named(const struct node_owner *owner, char *field, size_t field_bytes)
{
        json_t *references = node_owner_references(owner, "n1");
        const char *uid = json_string_value(json_object_get(json_array_get(references, 0), "uid"));

        field[0] = '\0';
        if (uid != NULL)
                strncat(field, uid, field_bytes - 1);
        json_decref(references);
        return field;
}

static void a_node_that_is_gone_is_named_no_more(void **state)
{
        struct node_owner owner = { .given_up = false };
        char uid[16];

        (void) state;
        node_owner_look(&owner, "e30." OF_N1 ".c2ln", "n1");
        assert_string_equal(named(&owner, uid, sizeof(uid)), "u-1");
        owner.due = false; /* it was written */
        node_owner_give_up(&owner);
        assert_true(owner.due);
        assert_string_equal(named(&owner, uid, sizeof(uid)), "");
        node_owner_look(&owner, "e30." OF_N1 ".c2ln", "n1"); /* the same token says nothing new */
        assert_string_equal(named(&owner, uid, sizeof(uid)), "");
        owner.due = false;
        node_owner_look(&owner, "e30." OF_N1_NEW ".c2ln", "n1");
        assert_true(owner.due);
        assert_string_equal(named(&owner, uid, sizeof(uid)), "u-2");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_token_says_which_node),
                cmocka_unit_test(a_node_that_is_gone_is_named_no_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
