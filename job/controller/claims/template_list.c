/* A list of few names. */
#include "job/controller/claims/template_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct template_list_entry *template_list_make(struct template_list_entry **list, void *owner,
                                               const char *name)
{
        struct template_list_entry *template = *list;

        while (template != NULL && strcmp(template->name, name) != 0)
                template = template->next;
        if (template != NULL || (template = calloc(1, sizeof(*template))) == NULL)
                return template;
        if (!text_copy(template->name, sizeof(template->name), name)) {
                free(template);
                return NULL;
        }
        template->owner = owner;
        template->next = *list;
        *list = template;
        return template;
}

void template_list_forget(struct template_list_entry **list)
{
        while (*list != NULL) {
                struct template_list_entry *template = *list;

                *list = template->next;
                template->forgotten = true;
                if (!template->asked)
                        free(template);
        }
}
