# embedded.mk: files that are embedded in the server. Pages are bundled and compressed; objects depend on them.

PAGE := $(BUILD)/server/web
DOCS := $(BUILD)/server/docs
CPPFLAGS_pages.c := -DPAGE_FOLDER=\"$(PAGE)\" -DDOCS_FOLDER=\"$(DOCS)\" -DOPENAPI_GZIP=\"$(BUILD)/server/openapi.json.gz\" \
	-I$(PAGE)

$(filter %/pages.o,$(SERVER_OBJ)): server/openapi.json $(addprefix $(BUILD)/server/,openapi.json.gz web/page.html.gz web/files.inc docs/page.html.gz)
$(filter %/architecture.o,$(SERVER_OBJ)): $(shell find server -name architectures.json 2>/dev/null)
$(filter %/demo_model.o,$(SERVER_OBJ)): $(wildcard examples/train_demo/model/*)

$(BUILD)/server/openapi.json.gz: server/openapi.json
	$(Q)mkdir -p $(@D)
	$(Q)gzip -9nc $< > $@

sources_of_page = $(shell find server/$(1) -name '*.js' -o -name '*.css' -o -name '*.html' -o -path '*/texts/en.json' 2>/dev/null) mk/bundle_page.sh mk/bundle_modules.awk
$(PAGE)/page.html.gz: $(call sources_of_page,web)
	$(Q)mk/bundle_page.sh server/web $(PAGE)

$(PAGE)/files.inc: $(wildcard server/web/*/*.json) mk/pack_files.sh
	$(Q)mkdir -p $(@D)
	$(Q)mk/pack_files.sh server/web $(PAGE)

$(DOCS)/page.html.gz: $(call sources_of_page,docs)
	$(Q)mk/bundle_page.sh server/docs $(DOCS)
