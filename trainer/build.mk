# The trainer: one program a runtime, the same objects but for the backend's file.
mpi_cflags  := $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile 2>/dev/null))
mpi_libs    := $(shell mpicc --showme:link 2>/dev/null)
blas_cflags := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags openblas 2>/dev/null))
blas_libs   := $(shell pkg-config --libs openblas 2>/dev/null)

CFLAGS_trainer            := $(mpi_cflags) -O3
CFLAGS_trainer_strategies := $(mpi_cflags) -O3
CFLAGS_trainer_backends   := $(blas_cflags) -O3

trainer  := $(filter-out trainer/main.c,$(wildcard trainer/*.c trainer/strategies/*.c))
trainers := cpu sunway
programs: $(addprefix $(B)/bin/remuda-train-,$(trainers))

$(B)/lib/trainer.a: $(call object,$(trainer))
$(addprefix $(B)/bin/remuda-train-,$(trainers)): $(B)/bin/remuda-train-%: $(B)/obj/trainer/main.o \
                $(B)/obj/trainer/backends/%.o $(B)/lib/trainer.a $(B)/lib/remuda.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(mpi_libs) $(blas_libs) -lz -lm -lpthread
