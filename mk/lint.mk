# lint.mk: static checks of the sources, and test coverage.

##@ Sources

HEADERS := $(PUBLIC_HEADERS) $(filter-out %.inc.h,\
           $(sort $(shell find core/src server tests bench -name node_modules -prune -o -name '*.h' -print 2>/dev/null)))
# The parts of a kernel (*.inc.h) compile only within a kernel's unit.
FORMATTED := $(SOURCES) $(HEADERS) $(wildcard core/src/kernel/*.inc.h core/src/kernel/*/*.inc.h) $(wildcard examples/*.c)

headers: ## every header compiles on its own
	$(Q)for h in $(HEADERS); do echo "#include \"$$h\"" | $(COMPILE) -I. -Iserver -Icore/src -Itests/support/core -Itests/support/server $(CFLAGS_SERVER) \
	    -fsyntax-only -x c - || { echo "$$h does not compile on its own" >&2; exit 1; }; done
	@echo "headers: $(words $(HEADERS)) compile on their own"

# Calls are read from the object files.
layers: $(CORE_OBJ) $(SERVER_OBJ) $(BUILD)/server/main.o ## includes and calls point one way, without circles; the READMEs' calls are there
	$(Q)mk/layers.py $(BUILD)
	$(Q)mk/checks/version.sh
	$(Q)mk/checks/calls.py core/README.md server/README.md
	$(Q)mk/checks/option.py

format: ## lay out all sources as .clang-format says
	$(Q)clang-format -i $(FORMATTED)

format-check: ## complain about sources that `make format` would change
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

compile_commands.json: Makefile $(wildcard mk/*.mk) $(SOURCES)
	$(file >$@,[)
	$(foreach f,$(SOURCES),$(foreach o,$(call obj,$f),$(file >>$@,$(compile_entry))))
	$(file >>$@,])
compile_entry = $(if $(filter $o,$(firstword $(call obj,$(firstword $(SOURCES))))),,$(comma)){"directory": "$(CURDIR)"$(comma) "file": "$f"$(comma) \
    "command": "$(subst ",\",$(subst \,\\,$(call command_for,$(f)))) $(call part_flags,$o) -c $f"}
command_for = $(CC) $(OUR_CPPFLAGS) $(call cppflags_of,$(1)) $(CPPFLAGS) $(OUR_CFLAGS) $(call cflags_of,$(1)) $(CFLAGS)

# What changed since a commit: the sources, and those that have the name of a header.
changed = $(if $(SINCE),$(shell git diff --name-only $(SINCE)),%)
# Clang's analyzer follows paths through each function. It takes 30 times the time of all other checks together.
tidy_checks = $(if $(filter no,$(ANALYZER)),--checks='-clang-analyzer-*')
tidy: compile_commands.json ## clang-tidy over the core and the server (SINCE=COMMIT: over what changed since then; ANALYZER=no: the quick checks)
	$(Q)printf '%s\n' $(filter $(changed) $(patsubst %.h,%.c,$(filter %.h,$(changed))),$(CORE_SRC) $(SERVER_SRC) $(OPENAPI_SRC)) | xargs -r -P $(PROCESSORS) -n $(if $(tidy_checks),16,1) \
	    clang-tidy --quiet $(tidy_checks) --warnings-as-errors='*' -p .

# Built without optimisation, so that every branch is a branch of the source.
COVERED_TESTS := check replay cases protocol layer-tests ops openapi vectors torture
COVERAGE := build/coverage/gcovr.json
coverage: ## lines and branches that the tests execute, by file and folder, and which they do not (build/coverage/uncovered.txt)
	$(Q)mk/install_packages.sh $(TEST_PACKAGES) gcovr
	+$(Q)$(MAKE) --no-print-directory MODE=coverage all
	$(Q)find build/coverage -name '*.gcda' -delete
	+$(Q)$(MAKE) --no-print-directory -k MODE=coverage TORTURE_SECONDS=$(or $(TORTURE_SECONDS),100) $(COVERED_TESTS)
	$(Q)gcovr --root . --filter core/ --filter server/ --exclude-unreachable-branches --json $(COVERAGE) \
	    --exclude-branches-by-pattern '.*\bassert\(.*' build/coverage
	$(Q)mk/coverage.py $(COVERAGE)
