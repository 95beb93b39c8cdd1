-- Objects that nobody but a person may decide about, found and counted without reading the others. Inside of a text a
-- quotation mark has a backslash before it, so what is looked for is a member and nothing else.

CREATE INDEX governed_for_a_person ON governed (object_type, object_id)
    WHERE instr(body, '"decision_mode":"escalate"') > 0 AND instr(body, '"closed":') = 0;
