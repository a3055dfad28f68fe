/* remuda doctor: the agent of this node, its configuration and its programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/configuration.h"
#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "cli/doctor.h"

static void check_agent(const struct doctor_patient *p, struct doctor_finding *f)
{
        if (p->agent_answers)
                doctor_found(f, DOCTOR_PASS, "", "the agent answers, generation %llu",
                             (unsigned long long) p->agent_inventory.generation);
        else
                doctor_found(f, DOCTOR_FAIL, "systemctl start remuda-agent, or look at the DaemonSet's pod",
                             "%s", p->agent_trouble);
}

static void check_agreement(const struct doctor_patient *p, struct doctor_finding *f)
{
        size_t missing = 0;

        if (!p->agent_answers) {
                doctor_found(f, DOCTOR_SKIP, "", "the agent does not answer");
                return;
        }
        for (size_t i = 0; i < p->inventory->device_count; i++)
                missing += inventory_find_device(&p->agent_inventory, p->inventory->devices[i].id) == NULL;
        if (missing > 0)
                doctor_found(f, DOCTOR_FAIL,
                             "the agent looks at another root, or is stuck: see its log, restart it",
                             "the agent does not tell %zu devices that a fresh look finds", missing);
        else
                doctor_found(f, DOCTOR_PASS, "", "the agent tells what a fresh look finds");
}

static void check_health(const struct doctor_patient *p, struct doctor_finding *f)
{
        size_t ill = 0;

        if (!p->agent_answers) {
                doctor_found(f, DOCTOR_SKIP, "", "the agent does not answer");
                return;
        }
        for (size_t i = 0; i < p->agent_inventory.device_count; i++)
                ill += p->agent_inventory.devices[i].group[0] != '\0' &&
                       !p->agent_inventory.devices[i].usable;
        if (ill > 0)
                doctor_found(f, DOCTOR_FAIL, "`remuda health` says which and why",
                             "%zu devices are not usable", ill);
        else
                doctor_found(f, DOCTOR_PASS, "", "every device is usable");
}

/* A gauge of the agent's that should be 1 everywhere. */
static void check_gauge(const struct doctor_patient *p, struct doctor_finding *f, const char *name,
                        const char *remedy, const char *bad, const char *well)
{
        double value = 1;

        if (p->metrics == NULL)
                doctor_found(f, DOCTOR_SKIP, "", "the agent does not answer");
        else if (!agent_client_metric(p->metrics, name, NULL, &value))
                doctor_found(f, DOCTOR_SKIP, "", "the agent was not asked to");
        else {
                for (const char *line = strstr(p->metrics, name); line != NULL; line = strstr(line + 1, name))
                        if ((line == p->metrics || line[-1] == '\n') &&
                            line[strcspn(line, "\n") - 1] == '0' && line[strcspn(line, "\n") - 2] == ' ')
                                value = 0;
                doctor_found(f, value == 0 ? DOCTOR_FAIL : DOCTOR_PASS, value == 0 ? remedy : "", "%s",
                             value == 0 ? bad : well);
        }
}

static void check_registration(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_gauge(
                p, f, "remuda_agent_kubelet_registered",
                "look at the agent's and the kubelet's logs; is the device-plugins folder the kubelet's own?",
                "the kubelet has not taken every resource", "the kubelet has taken every resource");
}

static void check_driver(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_gauge(p, f, "remuda_agent_driver_registered",
                    "is plugins_registry in --kubelet-root the kubelet's own? The kubelet's log says what it "
                    "made of remuda.dev-reg.sock",
                    "the kubelet has not taken the driver of claims",
                    "the kubelet has taken the driver of claims");
}

static void check_store(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_gauge(p, f, "remuda_agent_store_in_step",
                    "the agent's log says why; Kubernetes: its token, its role, the way to the API server",
                    "the store does not hold what the agent tells", "the store holds what the agent tells");
}

static void check_libraries(const struct doctor_patient *p, struct doctor_finding *f)
{
        check_gauge(p, f, "remuda_collector_success",
                    "a hanging driver: `dmesg`, then a reset; devices stay usable meanwhile",
                    "a vendor's library hangs, crashes or refuses", "the vendors' libraries answer");
}

/* As the agent reads it, keys of the kubelet's side included. */
static void check_config(const struct doctor_patient *p, struct doctor_finding *f)
{
        const struct agent_options options = { .config = p->config };
        CLEANUP(configuration_free) struct configuration configuration = { .plugin = NULL };
        struct err err = { 0 };
        int r = configuration_load(&options, &configuration, &err);

        if (r == -ENOENT)
                doctor_found(f, DOCTOR_PASS, "", "no configuration: the defaults are used");
        else if (r == -EBADMSG || r == -E2BIG)
                doctor_found(f, DOCTOR_FAIL,
                             "mend that line; `remuda-agent --check-config --config FILE` checks it again",
                             "%s", err.msg);
        else if (r < 0)
                doctor_found(f, DOCTOR_WARN, "", "the configuration cannot be read");
        else
                doctor_found(f, DOCTOR_PASS, "", "nothing is wrong with %s", p->config);
}

static void check_programs(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct program_table table;
        struct err err = { 0 };
        int r = program_file_load(p->programs, &table, &err);

        if (r == -ENOENT) {
                doctor_found(f, DOCTOR_PASS, "", "no program table (%s): jobs name their programs themselves",
                             p->programs);
                return;
        }
        if (r < 0) {
                doctor_found(f, DOCTOR_FAIL, "mend the program table", "%s", err.msg);
                return;
        }
        for (size_t i = 0; i < table.count; i++)
                if (program_file_check(&table.programs[i], NULL, &err) < 0)
                        doctor_found(f, DOCTOR_FAIL, "install the program, or mend its row", "%s: %s",
                                     table.programs[i].runtime, err.msg);
        doctor_found(f, DOCTOR_PASS, "", "%zu programs, all can be started", table.count);
        program_table_free(&table);
}

const struct doctor_check doctor_checks_agent[] = {
        { "agent", true, check_agent },
        { "agreement", true, check_agreement },
        { "health", true, check_health },
        { "registration", true, check_registration },
        { "claims: driver", true, check_driver },
        { "store", true, check_store },
        { "vendor libraries", true, check_libraries },
        { "configuration", true, check_config },
        { "programs", true, check_programs },
        { NULL, false, NULL },
};
