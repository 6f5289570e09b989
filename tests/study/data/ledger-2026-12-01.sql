BEGIN TRANSACTION;
CREATE TABLE argus_bed_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT argus_bed_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "argus_bed_version" VALUES('0002');
CREATE TABLE events (
	study_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	"key" VARCHAR(200), 
	payload TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	PRIMARY KEY (study_id, seq), 
	CONSTRAINT one_event_per_key UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "events" VALUES(1,1,'proposed','run:1','{"conditions":["baseline","candidate"],"gain_bits":0.7844809109224483,"gain_error":0.02784663444853244,"needs_approval":false,"perturbation":0.0,"plan":"broken(blocks=8)","predictions":[{"by_hypothesis":{"gc_pause":[0.0,0.5711829829429442],"gil_held":[1.774164458295838,5.822909982937481],"no_effect":[0.0,0.5711829829429442],"none_of_these":[0.0,0.9120954521311567]},"reading":"gil_wait[candidate] vs baseline"},{"by_hypothesis":{"gc_pause":[1.0609212915111252,2.4580398577095033],"gil_held":[0.0,0.5711829829429442],"no_effect":[0.0,0.5711829829429442],"none_of_these":[0.0,0.9120954521311567]},"reading":"gc_pause[candidate] vs baseline"}],"price_s":1.0,"probe":"broken","question":"what does broken read?","reason":"0.78 bits expected for 1 s; next best arms(blocks=8): 0.65 bits for 3 s","risk":"none","run":1,"runners_up":[["arms(blocks=8)",0.6454999894558691,3.0,0.21516666315195634]],"score":0.7844809109224483,"settings":{"blocks":8},"target":"cause","tied_with":[]}',1.79613802689476919176e+09,'host',1);
INSERT INTO "events" VALUES(1,2,'started','start:1:1','{"attempt":1,"place":"host/boot/pid","run":1}',1.79613802690015983585e+09,'host',1);
INSERT INTO "events" VALUES(1,3,'failed','end:1','{"after":{"gc_pause":0.2,"gil_held":0.2,"no_effect":0.4,"none_of_these":0.2},"before":{"gc_pause":0.2,"gil_held":0.2,"no_effect":0.4,"none_of_these":0.2},"bits":{},"environment":{},"error":"the instrument fell off","gained_bits":0.0,"number":1,"overhead":null,"price_s":1.0045001545222476e-05,"proposal":null,"readings":[],"samples":[],"seconds":0.0,"source":"probe","state":"failed","surprise":null}',1.79613802690229344368e+09,'host',1);
INSERT INTO "events" VALUES(1,4,'proposed','run:2','{"conditions":["baseline","candidate"],"gain_bits":0.7844809109224483,"gain_error":0.02784663444853244,"needs_approval":false,"perturbation":0.0,"plan":"broken(blocks=8)","predictions":[{"by_hypothesis":{"gc_pause":[0.0,0.5711829829429442],"gil_held":[1.774164458295838,5.822909982937481],"no_effect":[0.0,0.5711829829429442],"none_of_these":[0.0,0.9120954521311567]},"reading":"gil_wait[candidate] vs baseline"},{"by_hypothesis":{"gc_pause":[1.0609212915111252,2.4580398577095033],"gil_held":[0.0,0.5711829829429442],"no_effect":[0.0,0.5711829829429442],"none_of_these":[0.0,0.9120954521311567]},"reading":"gc_pause[candidate] vs baseline"}],"price_s":1.0,"probe":"broken","question":"what does broken read?","reason":"0.78 bits expected for 1 s; next best arms(blocks=8): 0.65 bits for 3 s","risk":"none","run":2,"runners_up":[["arms(blocks=8)",0.6454999894558691,3.0,0.21516666315195634]],"score":0.7844809109224483,"settings":{"blocks":8},"target":"cause","tied_with":[]}',1.7961380269208381176e+09,'host',1);
INSERT INTO "events" VALUES(1,5,'started','start:2:1','{"attempt":1,"place":"host/boot/pid","run":2}',1.79613802692347812647e+09,'host',1);
INSERT INTO "events" VALUES(1,6,'failed','end:2','{"after":{"gc_pause":0.2,"gil_held":0.2,"no_effect":0.4,"none_of_these":0.2},"before":{"gc_pause":0.2,"gil_held":0.2,"no_effect":0.4,"none_of_these":0.2},"bits":{},"environment":{},"error":"the instrument fell off","gained_bits":0.0,"number":2,"overhead":null,"price_s":1.0125000699190423e-05,"proposal":null,"readings":[],"samples":[],"seconds":0.0,"source":"probe","state":"failed","surprise":null}',1.79613802692502808567e+09,'host',1);
INSERT INTO "events" VALUES(1,7,'proposed','run:3','{"conditions":["baseline","candidate"],"gain_bits":0.6454999894558691,"gain_error":0.0026978210665082308,"needs_approval":false,"perturbation":0.5,"plan":"arms(blocks=8)","predictions":[{"by_hypothesis":{"gc_pause":[0.1776285341893004,0.45987949563956987],"gil_held":[0.1777762932640748,0.4616751926355486],"no_effect":[0.0,0.24591193546454804],"none_of_these":[0.011837757112796395,0.7922428090716068]},"reading":"step_time[candidate] vs baseline"}],"price_s":3.0,"probe":"arms","question":"what does arms read?","reason":"0.65 bits expected for 3 s","risk":"none","run":3,"runners_up":[],"score":0.21516666315195634,"settings":{"blocks":8},"target":"cause","tied_with":[]}',1.79613802693783044814e+09,'host',1);
INSERT INTO "events" VALUES(1,8,'started','start:3:1','{"attempt":1,"place":"host/boot/pid","run":3}',1.79613802694039225577e+09,'host',1);
INSERT INTO "events" VALUES(1,9,'observed','end:3','{"after":{"gc_pause":0.35868705632512266,"gil_held":0.4033107379154234,"no_effect":0.004783297367717689,"none_of_these":0.23321890839173637},"before":{"gc_pause":0.2,"gil_held":0.2,"no_effect":0.4,"none_of_these":0.2},"bits":{"gc_pause":0.8427256847643926,"gil_held":1.011891817177219,"no_effect":-6.3858507062916114,"none_of_these":0.22168476082453822},"environment":{},"error":"","gained_bits":0.7315372856865754,"number":3,"overhead":null,"price_s":3.0,"proposal":null,"readings":[{"against":"baseline","benign":0.003,"coincidence":0.020000000000000018,"condition":"candidate","dof":10.0,"family":"student","noise":0.008289128639918809,"quantity":"step_time","shown":"+30.0%","stage":null,"text":"step_time[candidate] vs baseline","used":true,"value":0.26236426446749084,"why_not":""}],"samples":[{"condition":"baseline","paired":true,"quantity":"step_time","stage":null,"values":[0.1,0.10020000000000001,0.0998,0.1001,0.0999,0.1,0.1003,0.09970000000000001]},{"condition":"candidate","paired":true,"quantity":"step_time","stage":null,"values":[0.12961,0.13038999999999998,0.13,0.12987,0.13013,0.12974,0.13026000000000001,0.13]}],"seconds":2.0,"source":"probe","state":"done","surprise":0.32943469785575047}',1.79613802775942301747e+09,'host',1);
INSERT INTO "events" VALUES(1,10,'verdict',NULL,'{"causes":[],"establishes":[],"evidence":[3],"leaves_open":["not excluded: gc_pause (35.9%), none_of_these (23.3%)","run 1, 2 failed and told nothing"],"next_action":"run the next probe","part":"","predicted_effect":"","price_s":3.0000201700022444,"probability":0.4033107379154234,"ranking":[["gil_held",0.4033107379154234],["gc_pause",0.35868705632512266],["none_of_these",0.23321890839173637],["no_effect",0.004783297367717689]],"runs":3,"status":"open","why":"a probe is still worth its price"}',1.79613802776563119892e+09,'host',1);
INSERT INTO "events" VALUES(1,11,'told','run:4','{"after":{"gc_pause":0.35868705632512266,"gil_held":0.4033107379154234,"no_effect":0.004783297367717689,"none_of_these":0.23321890839173637},"before":{"gc_pause":0.35868705632512266,"gil_held":0.4033107379154234,"no_effect":0.004783297367717689,"none_of_these":0.23321890839173637},"bits":{"gc_pause":0.0,"gil_held":0.0,"no_effect":0.0,"none_of_these":0.0},"environment":{},"error":"","gained_bits":0.0,"number":4,"overhead":null,"price_s":1.0,"proposal":null,"readings":[],"samples":[{"condition":"baseline","paired":false,"quantity":"page_faults","stage":null,"values":[100.0]}],"seconds":1.0,"source":"told","state":"done","surprise":null}',1.7961380292810544967e+09,'host',1);
CREATE TABLE leases (
	study_id INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	token VARCHAR(32) NOT NULL, 
	attempt INTEGER NOT NULL, 
	place VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	born DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	PRIMARY KEY (study_id, run), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	spec TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'rig',1.79613802568853020663e+09,'{}');
CREATE INDEX events_by_kind ON events (study_id, kind);
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_in_order BEFORE INSERT ON events WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM events WHERE study_id = NEW.study_id) OR (NEW.key IS NOT NULL AND EXISTS (SELECT 1 FROM events WHERE study_id = NEW.study_id AND key = NEW.key)) BEGIN SELECT RAISE(ABORT, 'events are append-only, without gaps, and once per key'); END;
COMMIT;
