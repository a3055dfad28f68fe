/* Template list: which ResourceClaimTemplates of a job were asked for, and which are there. Pure but for the
 * heap.
 */
#pragma once

#include <stdbool.h>

#define TEMPLATE_LIST_NAME_BYTES 96

struct template_list_entry {
        struct template_list_entry *next;
        void *owner; /* of the list */
        char name[TEMPLATE_LIST_NAME_BYTES];
        bool asked, made;
        bool forgotten; /* in no list any more: who has asked frees it */
};

/* template_list_make() - the entry of this name, made if there is none; NULL without memory. */
struct template_list_entry *template_list_make(struct template_list_entry **list, void *owner,
                                               const char *name);

/* template_list_forget() - all of them: they are asked for again, since one may have been deleted. */
void template_list_forget(struct template_list_entry **list);
