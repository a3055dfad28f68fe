/* One create a template; one that is there already is the same, for its name says all of it. */
#include "job/controller/claims/claim_templates.h"

#include <errno.h>
#include <stdlib.h>

#include "job/controller/claims/job_claim.h"
#include "job/controller/claims/template_list.h"
#include "job/controller/controller_internal.h"
#include "job/controller/write.h"

static void on_made(void *userdata, int result, const char *sentence)
{
        struct template_list_entry *template = userdata;
        struct record *record = template->owner;

        template->asked = false;
        template->made = result == 0 || result == -EEXIST;
        record->calls--;
        controller_queue(record);
        if (template->forgotten)
                free(template);
        else if (!template->made && result != -ECANCELED)
                write_not_made(record, result, sentence);
}

static void ask(struct record *record, struct template_list_entry *template, json_t *object)
{
        template->asked = true;
        record->calls++;
        store_create(cluster_store(record->controller->options.cluster), STORE_RESOURCE_CLAIM_TEMPLATE,
                     record->namespace_, object, on_made, template);
        json_decref(object);
}

bool claim_templates_make(struct record *record, const struct job_group *group)
{
        struct job_pods_owner owner = write_owner(record);
        char name[JOB_CLAIM_NAME_BYTES];
        struct template_list_entry *template;
        json_t *object;

        if (job_claim_class(&record->job, group) == NULL || group->planned)
                return true;
        job_claim_name(&record->job, group, &owner, name);
        template = template_list_make(&record->claim_templates, record, name);
        if (template != NULL && template->made)
                return true;
        if (template == NULL || template->asked || !controller_leads(record->controller))
                return false;
        object = job_claim_template(&record->job, group, &owner);
        if (object != NULL) /* without memory the next look has some */
                ask(record, template, object);
        return false;
}
